//! A client of the Responses API: `OpenAI`, Ark, Ollama, llama.cpp, vLLM, LM Studio, and what speaks like them.
//!
//! ```no_run
//! # async fn example(endpoint: agentchat::responses::Endpoint) -> Result<(), agentchat::responses::Error> {
//! use agentchat::responses::{Client, Input, Request, Update};
//!
//! let client = Client::new(endpoint)?;
//! let request = Request { model: "m".into(), input: Input::Text("hi".into()), ..Request::default() };
//! let mut stream = client.stream(&request).await?;
//! while let Some(step) = stream.next().await? {
//!     for update in step.updates {
//!         if let Update::CallDone { call, .. } = update { /* run it, send its output in the next request */ }
//!     }
//! }
//! let response = stream.into_response();
//! # Ok(())
//! # }
//! ```
//!
//! | module | is |
//! |---|---|
//! | `request`, `response` | what goes out and comes in; every field of what comes in may be missing |
//! | `sse`, `event`, `assembly` | bytes to frames, frames to events, events to [`Update`]s and a [`Response`]; pure |
//! | `names` | the two naming forms of the wire; ours is the documented one |
//! | `dialect` | what each server has and leaves out |
//! | `retry` | when a request is sent again; pure |
//! | `endpoint` | base URL, key and timeouts |
//! | `client`, `stream` | the IO |
//! | `error` | what can go wrong, and what to do about it |

mod assembly;
mod client;
mod dialect;
mod endpoint;
mod error;
mod event;
mod names;
mod request;
mod response;
mod retry;
pub mod sse;
mod stream;

pub use assembly::{Assembly, Update};
pub use client::{Client, MAX_BODY_BYTES, without_key};
pub use dialect::{BUILT_IN_TOOLS, Capabilities, Dialect};
pub use endpoint::{BaseUrl, Endpoint, Key, Timeouts};
pub use error::{ApiError, Error, Reason};
pub use event::Event;
pub use request::{Function, Input, Reasoning, Request, Tool, ToolChoice, item, part};
pub use response::{FunctionCall, Response, Status, Usage};
pub use retry::{MAX_RETRIES, MAX_WAIT, Retry};
pub use stream::{EventStream, Step};
