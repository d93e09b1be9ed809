//! Calls of functions in `lua/agentchat/`.
//!
//! A call may stay unanswered until the user acts (a hit-enter prompt, a half-typed command), and dropping one kills the
//! channel. So each runs in a task of its own, and whoever waits for it waits for that task's message.

use nvim_rs::error::CallError;
use rmpv::Value;
use tokio::sync::oneshot;

use super::channel::Nvim;

/// Why a call brought nothing.
#[derive(Debug, thiserror::Error)]
pub enum HandError {
    /// Lua raised an error, or the channel broke.
    #[error("Neovim reported: {0}")]
    Call(#[from] Box<CallError>),
    /// The helper is ending.
    #[error("the helper is ending")]
    Ending,
}

/// Sends a call, and returns what its answer will arrive on. Dropping that is harmless.
pub fn call(
    nvim: &Nvim,
    module: &str,
    function: &str,
    arguments: Vec<Value>,
) -> oneshot::Receiver<Result<Value, HandError>> {
    let (answer, receiver) = oneshot::channel();
    let nvim = nvim.clone();
    let mut parameters = vec![Value::from(module), Value::from(function)];
    parameters.extend(arguments);
    tokio::spawn(async move {
        let result = nvim
            .exec_lua("local m, f = ... return require(m)[f](select(3, ...))", parameters)
            .await
            .map_err(HandError::from);
        // Nobody waits any more: the answer came after its deadline.
        let _ = answer.send(result);
    });
    receiver
}

/// Sends a call and waits for its answer. Only for tasks that nothing else waits for.
///
/// # Errors
/// See [`HandError`].
pub async fn ask(nvim: &Nvim, module: &str, function: &str, arguments: Vec<Value>) -> Result<Value, HandError> {
    call(nvim, module, function, arguments).await.unwrap_or(Err(HandError::Ending))
}
