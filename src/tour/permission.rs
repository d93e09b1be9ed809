//! Asking the user: what for, the answers on offer, what an answer means.

use agent_client_protocol_schema::v1::{PermissionOption, PermissionOptionId, PermissionOptionKind};

/// What the user wants for one kind of action in this session.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Habit {
    #[default]
    Ask,
    Allow,
    Refuse,
}

/// What the guide needs permission for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Edit,
    Command,
}

impl Action {
    /// The answers to offer. "Always" and "never" hold as long as the session.
    pub(super) fn options(self) -> Options {
        let names = match self {
            Self::Edit => ["Make this edit", "Make all edits of this session", "Leave it", "No edits in this session"],
            Self::Command => {
                ["Run it", "Run all commands of this session", "Do not run it", "No commands in this session"]
            }
        };
        let [once, always, not_now, never] = names;
        [
            (PermissionOptionKind::AllowOnce, once),
            (PermissionOptionKind::AllowAlways, always),
            (PermissionOptionKind::RejectOnce, not_now),
            (PermissionOptionKind::RejectAlways, never),
        ]
    }
}

/// The options of a permission request, each with its kind and its name.
pub(super) type Options = [(PermissionOptionKind, &'static str); 4];

/// The options as the protocol has them.
pub(super) fn encode(options: &Options) -> Vec<PermissionOption> {
    let encode = |&(kind, name): &(_, &str)| PermissionOption::new(option_id(kind), name, kind);
    options.iter().map(encode).collect()
}

fn option_id(kind: PermissionOptionKind) -> PermissionOptionId {
    PermissionOptionId::new(match kind {
        PermissionOptionKind::AllowOnce => "allow-once",
        PermissionOptionKind::AllowAlways => "allow-always",
        PermissionOptionKind::RejectOnce => "reject-once",
        _ => "reject-always",
    })
}

/// How a permission request came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Decision {
    Option(PermissionOptionKind),
    /// The client answered with an error, or with an option that does not exist.
    Unusable(String),
}

impl Decision {
    /// The decision for the option that the client names.
    pub(super) fn of_answer(options: &Options, chosen: &PermissionOptionId) -> Self {
        match options.iter().find(|&&(kind, _)| option_id(kind) == *chosen) {
            Some(&(kind, _)) => Self::Option(kind),
            None => Self::Unusable(format!("the answer names the unknown option \"{chosen}\"")),
        }
    }

    /// Whether the action may be done.
    pub(super) fn allows(&self) -> bool {
        matches!(self, Self::Option(PermissionOptionKind::AllowOnce | PermissionOptionKind::AllowAlways))
    }
}
