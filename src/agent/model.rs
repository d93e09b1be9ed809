//! Which endpoint answers, and with which model.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;

use super::options::{Options, Possible};
use crate::profiles::{Choice, Config, ProfileError, choose, config_path};
use crate::responses::{Client, Error, Retry};

/// The variable that names the model, over the profile's.
const MODEL_VARIABLE: &str = "AGENTCHAT_MODEL";
/// The variable that says how many tokens the model's context has, over the profile's.
const CONTEXT_VARIABLE: &str = "AGENTCHAT_CONTEXT";

/// How long the list of models may take: a prompt waits for it.
const LISTING: Duration = Duration::from_secs(3);

/// Why there is no model to ask.
#[derive(Debug, thiserror::Error)]
pub(super) enum ModelError {
    #[error(transparent)]
    Profile(#[from] ProfileError),
    #[error(transparent)]
    Endpoint(#[from] Error),
    #[error("no model is chosen, and the endpoint {0} names none")]
    NoModel(String),
}

/// An endpoint that was found.
pub(super) struct Connected {
    pub(super) client: Client,
    /// The profile's model, or that of the environment.
    pub(super) model: Option<String>,
    /// Tokens that the model's context has, if that is known.
    pub(super) context: Option<u64>,
    /// The models that the endpoint names.
    pub(super) models: Vec<String>,
}

/// The endpoint, looked for when it is first needed, and again as long as there is none.
#[derive(Clone, Default)]
pub(super) struct Finder(Arc<Mutex<Option<Arc<Connected>>>>);

impl Finder {
    /// The endpoint. `on_retry` is told before a request is sent again.
    ///
    /// # Errors
    /// There is none, or it cannot be used.
    pub(super) async fn find(&self) -> Result<Arc<Connected>, ModelError> {
        let mut known = self.0.lock().await;
        if let Some(found) = known.as_ref() {
            return Ok(Arc::clone(found));
        }
        let config = Config::read(&config_path()?)?;
        let chosen = choose(&config, &Choice::default()).await?;
        let client = Client::new(chosen.endpoint)?;
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        let model = variable(MODEL_VARIABLE).or(chosen.profile.model);
        let context =
            variable(CONTEXT_VARIABLE).and_then(|tokens| tokens.trim().parse().ok()).or(chosen.profile.context);
        // A server that does not list its models may still answer.
        let models = match tokio::time::timeout(LISTING, client.models()).await {
            Ok(Ok(models)) => models,
            Ok(Err(error)) => {
                tracing::debug!(%error, "the endpoint lists no models");
                Vec::new()
            }
            Err(_) => Vec::new(),
        };
        let found = Arc::new(Connected { client, model, context, models });
        *known = Some(Arc::clone(&found));
        Ok(found)
    }

    /// What is known without looking.
    pub(super) fn possible(&self) -> Possible {
        let known = self.0.try_lock().ok().and_then(|known| known.clone());
        known.map_or_else(Possible::default, |known| known.possible())
    }
}

impl Connected {
    pub(super) fn possible(&self) -> Possible {
        let mut models = self.models.clone();
        if let Some(model) = &self.model {
            models.retain(|other| other != model);
            models.insert(0, model.clone());
        }
        Possible { dialect: Some(self.client.endpoint().dialect), models }
    }

    /// The model that a session asks. Local servers often have one, and then it is that.
    ///
    /// # Errors
    /// [`ModelError::NoModel`].
    pub(super) fn model(&self, options: &Options) -> Result<String, ModelError> {
        let chosen = options.model.clone().or_else(|| self.model.clone());
        let is_local = self.client.endpoint().base_url.is_loopback();
        chosen
            .or_else(|| self.models.first().filter(|_| is_local || self.models.len() == 1).cloned())
            .ok_or_else(|| ModelError::NoModel(self.client.endpoint().name.clone()))
    }

    /// A client that tells before it sends a request again.
    pub(super) fn telling(&self, notice: impl Fn(&Retry) + Send + Sync + 'static) -> Client {
        self.client.clone().with_retry_notice(notice)
    }
}
