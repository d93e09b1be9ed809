//! Failures as scripts see them: an envelope on standard error, and an exit code.

use std::process::ExitCode;

use serde_json::{Value, json};

use crate::profiles::ProfileError;
use crate::responses::{Error, Response};

/// What went wrong, and who could do something about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The command line, or a file that it names.
    Validation,
    /// The endpoint refused.
    Api,
    /// No connection, a server that failed, and everything else.
    General,
    /// The user stopped it.
    Cancelled,
    /// The answer is not what `--text-strict` demands.
    InvalidResponse,
    /// Nobody reads the result any more, which is no failure.
    Closed,
}

/// Why a command failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Failure {
    pub(crate) fn validation(message: impl Into<String>) -> Self {
        Self { kind: Kind::Validation, message: message.into(), hint: None }
    }

    pub(crate) fn general(message: impl Into<String>) -> Self {
        Self { kind: Kind::General, message: message.into(), hint: None }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// A failure of a request. `operation` is what was asked of the endpoint.
    pub(crate) fn of_request(operation: &str, error: &Error) -> Self {
        let kind = match error {
            // A server that failed is no answer to what was asked.
            Error::Api(api) if api.effective_status().is_some_and(|status| status >= 500) => Kind::General,
            Error::Api(_) => Kind::Api,
            Error::Setup(_) => Kind::Validation,
            _ => Kind::General,
        };
        let mut hint = error.hint().map(str::to_owned);
        if let Error::Api(api) = error {
            let mut more = Vec::new();
            more.extend(hint.take());
            more.extend(
                api.retry_after.map(|wait| format!("the endpoint says: try again in {} s", wait.as_secs_f32().ceil())),
            );
            more.extend(api.request_id.as_ref().map(|id| format!("request id {id}")));
            hint = Some(more.join("; ")).filter(|text| !text.is_empty());
        }
        Self { kind, message: format!("{operation}: {error}"), hint }
    }

    pub(crate) fn cancelled() -> Self {
        Self { kind: Kind::Cancelled, message: "cancelled".to_owned(), hint: None }
    }

    /// The result could not be written.
    pub(crate) fn of_output(error: &std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Self { kind: Kind::Closed, message: String::new(), hint: None },
            _ => Self::general(format!("the result cannot be written: {error}")),
        }
    }

    /// Whether there is nothing to say.
    pub(crate) fn is_silent(&self) -> bool {
        self.kind == Kind::Closed
    }

    /// Says in the hint where the part of the answer is that had come.
    pub(crate) fn with_kept(mut self, response: &Response) -> Self {
        let kept = format!("what had come is stored: agentchat chat get {}", response.id());
        self.hint = Some(self.hint.map_or_else(|| kept.clone(), |hint| format!("{hint}; {kept}")));
        self
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self.kind {
            Kind::Closed => 0,
            Kind::General | Kind::Cancelled | Kind::InvalidResponse => 1,
            Kind::Validation => 2,
            Kind::Api => 5,
        })
    }

    /// The envelope, in one line.
    pub(crate) fn envelope(&self) -> Value {
        let kind = match self.kind {
            Kind::Validation => "validation",
            Kind::Api => "api",
            Kind::General | Kind::Closed => "error",
            Kind::Cancelled => "cancelled",
            Kind::InvalidResponse => "invalid_response",
        };
        let mut error = json!({"type": kind, "message": self.message});
        if let Some(hint) = &self.hint {
            error["hint"] = hint.as_str().into();
        }
        json!({"ok": false, "error": error})
    }
}

impl From<ProfileError> for Failure {
    fn from(error: ProfileError) -> Self {
        let hint = error.hint().map(str::to_owned);
        Self { kind: Kind::Validation, message: error.to_string(), hint }
    }
}
