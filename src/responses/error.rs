//! What can go wrong between a request and its answer.

use std::time::Duration;

use serde_json::Value;

use super::Response;

/// Why there is no answer, or not all of it. Each sentence says what happened; [`Error::hint`] says what to do.
///
/// No text of it contains the key of the endpoint: the client takes it out of whatever a server sends back.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The endpoint refused, or failed before it answered or in the middle of its answer.
    #[error("{0}")]
    Api(Box<ApiError>),
    /// No connection, or one that broke before the answer began. Whether the request was carried out is not known.
    #[error("no connection to {host}: {reason}")]
    Connect {
        /// Scheme, host and port.
        host: String,
        /// What the system, or the TLS library, says about it.
        reason: String,
    },
    /// Nothing came for longer than the endpoint's timeouts allow.
    #[error("nothing came from {host} for {} s", waited.as_secs_f32())]
    Stalled {
        /// Scheme, host and port.
        host: String,
        /// How long nothing came.
        waited: Duration,
        /// What had come before; nothing if the answer had not begun.
        partial: Option<Box<Response>>,
    },
    /// The connection ended before the answer did.
    #[error("the connection to {host} ended in the middle of the answer ({reason})")]
    Cut {
        /// Scheme, host and port.
        host: String,
        /// What the system says about it.
        reason: String,
        /// What had come before.
        partial: Box<Response>,
    },
    /// What came is not the Responses API.
    #[error("{host} does not speak the Responses API: {reason}")]
    Protocol {
        /// Scheme, host and port.
        host: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The client could not be set up.
    #[error("{0}")]
    Setup(String),
}

/// What an endpoint says about a failure, in any of the shapes that servers use.
#[derive(Debug, Clone, Default)]
pub struct ApiError {
    /// The HTTP status; none for an error within a stream that had begun with 200.
    pub status: Option<u16>,
    /// `error.code` as text, also where servers send a number.
    pub code: Option<String>,
    /// `error.type`.
    pub kind: Option<String>,
    /// `error.param`: the field of the request that is meant.
    pub param: Option<String>,
    /// `error.message`; never empty.
    pub message: String,
    /// The request's id at the endpoint, for its support.
    pub request_id: Option<String>,
    /// How long to wait before the next attempt, if the endpoint said so.
    pub retry_after: Option<Duration>,
    /// The body as it came, if it was JSON.
    pub body: Option<Value>,
    /// What had been answered before the failure.
    pub partial: Option<Box<Response>>,
}

impl std::fmt::Display for ApiError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.status, &self.body) {
            (Some(status), Some(body)) => write!(out, "Error code: {status} - {body}"),
            (Some(status), None) => write!(out, "Error code: {status} - {}", self.message),
            (None, _) => match &self.code {
                Some(code) => write!(out, "{code}: {}", self.message),
                None => out.write_str(&self.message),
            },
        }
    }
}

impl ApiError {
    /// Reads an error from JSON: `{"error": {…}}`, `{"error": "text"}`, `{"type": "error", "message": …}`, `{"code", "message"}`,
    /// `{"detail": …}`. Whatever is missing stays empty; the message says at least that there was none.
    pub fn from_json(body: &Value) -> Self {
        let inner = match body.get("error") {
            Some(error @ Value::Object(_)) => error,
            _ => body,
        };
        let message = text(inner.get("message"))
            .or_else(|| text(body.get("error")))
            .or_else(|| text(inner.get("detail")))
            .unwrap_or_else(|| "the endpoint gave no reason".to_owned());
        let kind = text(inner.get("type")).filter(|kind| kind != "error");
        Self {
            code: text(inner.get("code")),
            kind,
            param: text(inner.get("param")),
            message,
            body: Some(body.clone()),
            ..Self::default()
        }
    }

    /// The status of a failure, also where it is only told by a numeric `code` (llama.cpp within a stream).
    pub fn effective_status(&self) -> Option<u16> {
        self.status.or_else(|| self.code.as_ref()?.parse().ok().filter(|status| (400..600).contains(status)))
    }

    /// Whether code, type or message has one of these words, whatever their case.
    fn mentions(&self, words: &[&str]) -> bool {
        let all =
            format!("{} {} {}", self.code.as_deref().unwrap_or(""), self.kind.as_deref().unwrap_or(""), self.message)
                .to_ascii_lowercase();
        words.iter().any(|word| all.contains(word))
    }

    /// What kind of failure this is, as far as the words of the known servers tell.
    pub fn reason(&self) -> Reason {
        let status = self.effective_status();
        if self.mentions(&[
            "context_length",
            "context length",
            "context size",
            "maximum context",
            "too many tokens",
            "exceed_context",
        ]) {
            return Reason::ContextTooLong;
        }
        if self.mentions(&["content_filter", "content filter", "sensitivecontent", "content_policy", "riskdetected"]) {
            return Reason::ContentFilter;
        }
        if self.mentions(&["previousresponsenotfound", "previous_response_not_found"]) {
            return Reason::ResponseNotFound;
        }
        if self.mentions(&["insufficient_quota", "quota", "accountoverdue", "billing"]) {
            return Reason::Quota;
        }
        match status {
            Some(401) => Reason::Key,
            Some(403) if self.mentions(&["key", "auth", "token"]) => Reason::Key,
            Some(403) => Reason::Forbidden,
            Some(429) => Reason::RateLimit,
            Some(400 | 404)
                if self.mentions(&["model", "endpoint"])
                    && self.mentions(&["not found", "notfound", "not_found", "does not exist", "no such"]) =>
            {
                Reason::Model
            }
            Some(404) => Reason::NotFound,
            Some(400..=499)
                if self.mentions(&["tool"]) && self.mentions(&["not support", "unsupported", "does not support"]) =>
            {
                Reason::NoTools
            }
            Some(500..=599) => Reason::Server,
            _ if self.mentions(&["rate_limit", "rate limit", "ratelimit"]) => Reason::RateLimit,
            _ if self.mentions(&["server_error", "internalserviceerror", "overloaded"]) => Reason::Server,
            _ => Reason::Other,
        }
    }
}

/// Kinds of failures that want different advice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// No key, or a wrong one.
    Key,
    /// The key is right, but not for this.
    Forbidden,
    /// The model is not known to the endpoint.
    Model,
    /// The response is not known to the endpoint.
    ResponseNotFound,
    /// The endpoint has no such path.
    NotFound,
    /// Too many requests.
    RateLimit,
    /// The account is used up.
    Quota,
    /// The conversation does not fit into the model's context.
    ContextTooLong,
    /// The endpoint refuses the content.
    ContentFilter,
    /// The model, or the server as it was started, has no tools.
    NoTools,
    /// The endpoint has failed.
    Server,
    /// Something else.
    Other,
}

impl Reason {
    /// What the user can do about it, as one sentence; none where the endpoint's own words are all there is.
    pub const fn hint(self) -> Option<&'static str> {
        Some(match self {
            Self::Key => "check the key: `agentchat profile test` shows which one is used (never the key itself)",
            Self::Forbidden => "this key may not use that model or feature: ask for access, or choose another --model",
            Self::Model => "the endpoint does not know this model: `agentchat profile test` lists those that it has",
            Self::ResponseNotFound => {
                "the response was not stored (--store), has expired, or belongs to another key: begin without --previous-response-id"
            }
            Self::NotFound => {
                "the endpoint has no such path: check base_url, which usually ends with /v1 (or /api/v3 for Ark)"
            }
            Self::RateLimit => "too many requests: wait a little, or ask the endpoint for a higher limit",
            Self::Quota => "the account of this key is used up: check its billing",
            Self::ContextTooLong => {
                "the conversation is longer than the model's context: shorten it, or take a model with a larger one"
            }
            Self::ContentFilter => "the endpoint's content filter refused this: rephrase the request",
            Self::NoTools => {
                "this model cannot use tools: leave them out, choose another model, or start llama.cpp with --jinja"
            }
            Self::Server => "the endpoint failed: try again in a moment",
            Self::Other => return None,
        })
    }
}

impl Error {
    /// What the user can do about it, as one sentence.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Api(error) => error.reason().hint(),
            Self::Connect { .. } => Some(
                "check that the server runs, base_url, the network and the proxy (HTTPS_PROXY, NO_PROXY); `agentchat profile test` tries it",
            ),
            Self::Stalled { .. } => Some("try again, or raise stall_timeout in the profile if the model needs longer"),
            Self::Cut { .. } => {
                Some("nothing was sent again, since tools may have run: ask again if the answer is not enough")
            }
            Self::Protocol { .. } => Some("check base_url: it has to be the part before /responses"),
            Self::Setup(_) => None,
        }
    }

    /// What had been answered before the failure.
    pub fn partial(&self) -> Option<&Response> {
        match self {
            Self::Api(error) => error.partial.as_deref(),
            Self::Stalled { partial, .. } => partial.as_deref(),
            Self::Cut { partial, .. } => Some(partial),
            _ => None,
        }
    }
}

/// A value as text: strings that are not empty, and numbers.
fn text(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Array(_) => value.map(Value::to_string),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn error(status: Option<u16>, body: &Value) -> ApiError {
        ApiError { status, ..ApiError::from_json(body) }
    }

    #[test]
    fn every_shape_of_an_error_is_read() {
        let openai = json!({"error": {"code": "model_not_found", "message": "The model `x` does not exist", "param": null, "type": "invalid_request_error"}});
        let read = error(Some(404), &openai);
        assert_eq!((read.code.as_deref(), read.reason()), (Some("model_not_found"), Reason::Model));
        let llama =
            error(None, &json!({"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}));
        assert_eq!((llama.effective_status(), llama.reason()), (Some(503), Reason::Server));
        let event = error(
            None,
            &json!({"type": "error", "code": "rate_limit_exceeded", "message": "slow down", "sequence_number": 3}),
        );
        assert_eq!((event.kind.as_deref(), event.reason()), (None, Reason::RateLimit));
        assert_eq!(error(None, &json!({"error": "model is required"})).message, "model is required");
        assert_eq!(error(Some(422), &json!({"detail": [{"loc": ["body"]}]})).message, "[{\"loc\":[\"body\"]}]");
        assert_eq!(error(Some(500), &json!({})).message, "the endpoint gave no reason");
    }

    #[test]
    fn the_reason_follows_from_the_words_of_known_servers() {
        let ark = |code: &str, status| {
            error(Some(status), &json!({"error": {"code": code, "message": "…", "type": "…"}})).reason()
        };
        assert_eq!(ark("InvalidEndpointOrModel.NotFound", 404), Reason::Model);
        assert_eq!(ark("InvalidParameter.PreviousResponseNotFound", 400), Reason::ResponseNotFound);
        assert_eq!(ark("AuthenticationError", 401), Reason::Key);
        assert_eq!(ark("AccountOverdueError", 403), Reason::Quota);
        assert_eq!(ark("SensitiveContentDetected", 400), Reason::ContentFilter);
        assert_eq!(ark("context_length_exceeded", 400), Reason::ContextTooLong);
        let ollama = error(Some(400), &json!({"error": {"message": "registry/m does not support tools"}}));
        assert_eq!(ollama.reason(), Reason::NoTools);
    }
}
