//! Ctrl-C.

use tokio::sync::watch;

/// Tells whoever waits that the user wants to stop.
#[derive(Debug, Clone)]
pub(crate) struct Interrupt(watch::Receiver<bool>);

impl Interrupt {
    /// Listens from now on. A second signal ends the process at once, should the first not be enough.
    pub(crate) fn listen() -> Self {
        let (tell, told) = watch::channel(false);
        tokio::spawn(async move {
            if signal().await {
                // Nobody may be waiting any more.
                let _ = tell.send(true);
                if signal().await {
                    std::process::exit(130);
                }
            }
            // The sender lives on, since its end would look like a signal.
            std::future::pending::<()>().await;
        });
        Self(told)
    }

    /// Ends when the user wants to stop.
    pub(crate) async fn wait(&self) {
        let mut told = self.0.clone();
        if told.wait_for(|told| *told).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Waits for a signal that ends programs; false if there is none to wait for.
#[cfg(unix)]
async fn signal() -> bool {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return false;
    };
    tokio::select! {
        _ = interrupt.recv() => true,
        _ = terminate.recv() => true,
    }
}

#[cfg(not(unix))]
async fn signal() -> bool {
    tokio::signal::ctrl_c().await.is_ok()
}
