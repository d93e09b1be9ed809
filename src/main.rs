//! agentchat
fn main() -> Result<(), agentchat::tour::TourError> {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    else {
        return Ok(());
    };
    let result = runtime.block_on(agentchat::tour::run(
        tokio::io::stdin(),
        tokio::io::stdout(),
    ));
    runtime.shutdown_background();
    result
}
