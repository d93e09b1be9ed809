//! What a request that failed means for the user, and for the turn.

use agent_client_protocol_schema::v1::StopReason;

use super::model::ModelError;
use crate::responses::{Error, Reason};

/// A failure in words, and how the turn ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// Markdown: what happened, and what to do.
    pub(super) text: String,
    pub(super) reason: StopReason,
}

/// What a failed request means.
pub(super) fn of_request(error: &Error) -> Failure {
    let reason = match error {
        Error::Api(api) => api.reason(),
        _ => Reason::Other,
    };
    let what = match error {
        Error::Api(api) => api.message.clone(),
        other => other.to_string(),
    };
    let hint = match reason {
        // Those of the command line name its options.
        Reason::Model => Some("choose another with `/model`; `agentchat profile test` lists those that it has"),
        Reason::Forbidden => {
            Some("this key may not use that model or feature: ask for access, or choose another with `/model`")
        }
        Reason::ContextTooLong => Some("`/compact` shortens the conversation, and a new session begins anew"),
        Reason::NoTools => Some(
            "this model cannot use tools, and without them it is no coding agent: choose another with `/model`, or start llama.cpp with `--jinja`",
        ),
        _ => error.hint(),
    };
    let stop = match reason {
        Reason::ContentFilter => StopReason::Refusal,
        Reason::ContextTooLong => StopReason::MaxTokens,
        _ => StopReason::EndTurn,
    };
    Failure { text: in_words(&what, hint), reason: stop }
}

/// What it means that there is no model.
pub(super) fn of_model(error: &ModelError) -> Failure {
    let text = match error {
        ModelError::Endpoint(error) => return of_request(error),
        ModelError::Profile(profile) => in_words(&profile.to_string(), profile.hint()),
        ModelError::NoModel(_) => in_words(
            &error.to_string(),
            Some(
                "`/model NAME` chooses one for this session, `agentchat profile add` for good, and so does AGENTCHAT_MODEL",
            ),
        ),
    };
    Failure { text, reason: StopReason::EndTurn }
}

fn in_words(what: &str, hint: Option<&str>) -> String {
    let what = what.trim().trim_end_matches('.');
    let hint = hint.map(|hint| format!("\n\nWhat to do: {}.", hint.trim_end_matches('.'))).unwrap_or_default();
    format!("**The model did not answer:** {what}.{hint}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::responses::ApiError;
    use serde_json::json;

    fn of(status: u16, code: &str, message: &str) -> Failure {
        let error = ApiError {
            status: Some(status),
            ..ApiError::from_json(&json!({"error": {"code": code, "message": message}}))
        };
        of_request(&Error::Api(Box::new(error)))
    }

    #[test]
    fn each_failure_says_what_to_do_and_ends_the_turn_as_it_should() {
        let key = of(401, "invalid_api_key", "Incorrect API key provided.");
        assert!(key.text.contains("Incorrect API key") && key.text.contains("check the key"), "{key:?}");
        assert_eq!(key.reason, StopReason::EndTurn);
        assert!(of(404, "model_not_found", "The model `x` does not exist").text.contains("`/model`"));
        assert_eq!(of(400, "context_length_exceeded", "too long").reason, StopReason::MaxTokens);
        assert_eq!(of(400, "content_filter", "no").reason, StopReason::Refusal);
        assert!(of(429, "rate_limit_exceeded", "slow down").text.contains("wait a little"));
        let none = of_model(&ModelError::Profile(crate::profiles::ProfileError::None));
        assert!(none.text.contains("OPENAI_API_KEY") && none.text.contains("What to do"), "{none:?}");
    }
}
