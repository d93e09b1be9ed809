//! Values for Lua: the items of a frame.

use rmpv::Value;

use crate::core::choices::SessionOption;
use crate::core::effect::{MessageLevel, Show, UserEvent};
use crate::core::follow::{SeenPlace, SeenTerminal, Visit, Whereabouts};
use crate::core::ids::{ChatId, PromptId};
use crate::core::message::AgentCommand;
use crate::core::permission::{Choice, PermissionView};
use crate::core::sign_in::{Launch, SignInMethod};
use crate::core::status::Status;
use crate::core::tool_call::ToolCall;
use crate::store::Answer;
use crate::view::{Mark, Op, permission, proposal, short_line};
use std::path::Path;

mod elicitation;

/// Ways to answer a request that are shown. Agents have three or four.
const OPTIONS: usize = 100;

/// A map with names for keys.
pub(super) fn map<'a>(pairs: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    Value::Map(pairs.into_iter().map(|(key, value)| (Value::from(key), value)).collect())
}

fn text(value: impl Into<String>) -> Value {
    Value::from(value.into())
}

fn optional(value: Option<impl Into<String>>) -> Value {
    value.map_or(Value::Nil, text)
}

/// A row number, or a count.
fn number(value: usize) -> Value {
    Value::from(value)
}

/// Edits of a transcript, and what lies where afterwards.
pub(super) fn rows(chat: ChatId, base: u64, ops: Vec<Op>, marks: Vec<Mark>) -> Value {
    let ops = Value::Array(ops.into_iter().map(op).collect());
    let mut item = vec!["rows".into(), chat.0.into(), base.into(), ops];
    if !marks.is_empty() {
        item.push(Value::Array(marks.into_iter().map(mark).collect()));
    }
    Value::Array(item)
}

fn mark(mark: Mark) -> Value {
    Value::Array(match mark {
        Mark::Entry { entry, row, kind } => vec!["e".into(), number(entry), number(row), kind.into()],
        Mark::Fold { id, first, last, label } => {
            vec!["f".into(), number(id), number(first), number(last), label.into()]
        }
        Mark::Unfold { id } => vec!["u".into(), number(id)],
    })
}

/// A piece of what is known of a tool call.
pub(super) fn inspection(chat: ChatId, entry: usize, is_first: bool, title: &str, lines: Vec<String>) -> Value {
    let lines = Value::Array(lines.into_iter().map(Value::from).collect());
    Value::Array(vec!["inspect".into(), chat.0.into(), number(entry), is_first.into(), title.into(), lines])
}

fn op(op: Op) -> Value {
    let lines = |lines: Vec<String>| Value::Array(lines.into_iter().map(Value::from).collect());
    Value::Array(match op {
        Op::SetLines { first, last, lines: new } => vec!["l".into(), number(first), last.into(), lines(new)],
        Op::InsertText { row, col, lines: new } => vec!["t".into(), number(row), number(col), lines(new)],
        Op::Mark { row, col, end_row, end_col, group, grows } => {
            let place = [row, col, end_row, end_col].map(number);
            ["m".into()].into_iter().chain(place).chain([group.into(), grows.into()]).collect()
        }
        Op::Highlight { group, is_block, ranges } => vec!["h".into(), group.into(), is_block.into(), flat(&ranges)],
        Op::Pad { fill, places } => vec!["p".into(), fill.into(), flat(&places)],
        Op::Code { first, end, language } => vec!["c".into(), number(first), number(end), text(language)],
        Op::Unmark { first, last, col } => vec!["x".into(), number(first), number(last), number(col)],
    })
}

/// Triples as one list: three times as many tables would cost Lua more than the marks do.
fn flat(triples: &[[usize; 3]]) -> Value {
    Value::Array(triples.iter().flatten().copied().map(number).collect())
}

/// The status of a chat.
pub(super) fn status(chat: ChatId, status: &Status) -> Value {
    let usage = status.usage.as_ref().map_or(Value::Nil, |usage| {
        let cost = usage.cost.as_ref().map_or(Value::Nil, |(amount, currency)| {
            map([("amount", (*amount).into()), ("currency", text(currency.as_str()))])
        });
        map([("used", usage.used.into()), ("size", usage.size.into()), ("cost", cost)])
    });
    let plan = status.plan.as_ref().map_or(Value::Nil, |plan| {
        map([
            ("done", number(plan.done)),
            ("total", number(plan.total)),
            ("step", optional(plan.step.as_deref().map(short_line))),
        ])
    });
    let takes = status.takes.map_or(Value::Nil, |takes| {
        map([("image", takes.image.into()), ("embedded_context", takes.embedded_context.into())])
    });
    let table = map([
        ("state", status.state.as_str().into()),
        ("phase", optional(status.phase)),
        ("agent", text(status.agent.as_str())),
        ("session_id", optional(status.session.as_ref().map(ToString::to_string))),
        ("title", optional(status.title.as_deref().map(short_line))),
        ("mode", optional(status.mode.as_deref())),
        ("model", optional(status.model.as_deref())),
        ("usage", usage),
        ("plan", plan),
        ("prompt_capabilities", takes),
        ("permissions", number(status.permissions)),
        ("elicitations", number(status.elicitations)),
        ("queued", number(status.queued)),
        ("turn", status.turn.into()),
        ("lost", status.lost.into()),
        ("error", optional(status.error.as_deref())),
    ]);
    Value::Array(vec!["status".into(), chat.0.into(), table])
}

/// The queue of permission requests.
pub(super) fn permissions(views: &[PermissionView], cwd_of: impl Fn(ChatId) -> std::path::PathBuf) -> Value {
    let list = views.iter().map(|view| permission_request(view, &cwd_of(view.chat))).collect();
    Value::Array(vec!["permissions".into(), Value::Array(list)])
}

/// What the unfinished calls of a chat would do to files, each with its id.
pub(super) fn proposals(chat: ChatId, calls: &[ToolCall], cwd: &Path) -> Value {
    let of_call = |call: &ToolCall| {
        let list = proposal::proposals(call).into_iter().map(|found| proposed(found, cwd)).collect::<Vec<_>>();
        (!list.is_empty()).then(|| map([("id", text(call.id.as_str())), ("proposed", Value::Array(list))]))
    };
    Value::Array(vec!["proposals".into(), chat.0.into(), Value::Array(calls.iter().filter_map(of_call).collect())])
}

fn proposed(proposal: proposal::Proposal, cwd: &Path) -> Value {
    let path = cwd.join(proposal.path).display().to_string();
    map([("path", text(path)), ("old", optional(proposal.old.as_deref())), ("new", text(proposal.new))])
}

fn permission_request(view: &PermissionView, cwd: &Path) -> Value {
    let mut detail = permission::detail(&view.tool, cwd);
    if view.choices.len() > OPTIONS {
        detail.push(format!("… {} more ways to answer", view.choices.len() - OPTIONS));
    }
    let detail = detail.into_iter().map(Value::from).collect();
    let options = view.choices.iter().take(OPTIONS).map(choice).collect();
    let marks = view.marks.iter().map(|mark| mark.sentence().into()).collect();
    map([
        ("request", view.request.0.into()),
        ("chat", view.chat.0.into()),
        ("agent", text(view.agent.as_str())),
        ("title", text(permission::title(&view.tool))),
        ("kind", text(view.tool.kind.as_str())),
        ("detail", Value::Array(detail)),
        ("marks", Value::Array(marks)),
        ("options", Value::Array(options)),
        ("proposed", Value::Array(proposal::proposals(&view.tool).into_iter().map(|p| proposed(p, cwd)).collect())),
    ])
}

fn choice(choice: &Choice) -> Value {
    map([
        ("id", text(choice.option.id.as_str())),
        ("name", text(short_line(&choice.option.name))),
        ("kind", text(choice.option.kind.as_str())),
        ("rule", optional(choice.rule.as_deref().map(short_line))),
    ])
}

/// The rules of the configuration, and the answers that are remembered.
pub(crate) fn permission_list(rules: &[String], answers: &[Answer], root: &Path) -> Value {
    let answers = answers.iter().map(|answer| {
        map([
            ("id", answer.id.0.into()),
            ("made_at", (answer.made_at_ms / 1000).into()),
            ("agent", text(answer.agent.as_str())),
            ("shown", text(short_line(&answer.shown))),
            ("project", text(answer.project.display().to_string())),
            ("here", (answer.project == root).into()),
        ])
    });
    map([
        ("rules", Value::Array(rules.iter().map(|rule| text(short_line(rule))).collect())),
        ("answers", Value::Array(answers.collect())),
    ])
}

/// The ids of the prompts that wait, and the newest one that is waiting, in the transcript or given back; 0 if none is.
pub(super) fn queued(chat: ChatId, prompts: &[PromptId], shown: Option<PromptId>) -> Value {
    let ids = prompts.iter().map(|id| id.0.into()).collect();
    Value::Array(vec!["queued".into(), chat.0.into(), Value::Array(ids), shown.map_or(0, |id| id.0).into()])
}

/// The agent's commands.
pub(super) fn commands(chat: ChatId, commands: &[AgentCommand]) -> Value {
    let list = commands.iter().map(|command| {
        map([
            ("name", text(command.name.as_str())),
            ("description", text(command.description.as_str())),
            ("hint", optional(command.hint.as_deref())),
        ])
    });
    Value::Array(vec!["commands".into(), chat.0.into(), Value::Array(list.collect())])
}

/// What the session can be set to.
pub(super) fn options(chat: ChatId, options: &[SessionOption]) -> Value {
    let list = options.iter().map(|option| {
        let values = option.values.iter().map(|value| {
            map([
                ("id", text(value.id.as_str())),
                ("name", text(value.name.as_str())),
                ("description", optional(value.description.as_deref())),
                ("group", optional(value.group.as_deref())),
            ])
        });
        map([
            ("id", text(option.id.as_str())),
            ("name", text(option.name.as_str())),
            ("description", optional(option.description.as_deref())),
            ("category", optional(option.category.as_deref())),
            ("current", text(option.current.as_str())),
            ("is_switch", option.is_switch().into()),
            ("values", Value::Array(values.collect())),
        ])
    });
    Value::Array(vec!["options".into(), chat.0.into(), Value::Array(list.collect())])
}

/// Where the agent is.
pub(super) fn whereabouts(chat: ChatId, news: Whereabouts) -> Value {
    let Whereabouts { clear, places, newest, terminal } = news;
    let places = Value::Array(places.into_iter().map(place).collect());
    let newest = terminal.map(seen_terminal).or_else(|| newest.map(place)).unwrap_or(Value::Nil);
    Value::Array(vec!["follow".into(), chat.0.into(), clear.into(), places, newest])
}

fn seen_terminal(seen: SeenTerminal) -> Value {
    map([("terminal", seen.terminal.0.into()), ("kind", text(seen.kind)), ("title", text(short_line(&seen.title)))])
}

fn place(place: SeenPlace) -> Value {
    map([
        ("path", text(place.path.display().to_string())),
        ("line", place.line.map_or(Value::Nil, Value::from)),
        ("size", place.size.into()),
        ("kind", text(place.kind)),
        ("title", text(short_line(&place.title))),
    ])
}

/// A place of the trail, and the text of its line.
pub(super) fn visit(visit: &Visit, line: Option<&str>) -> Value {
    map([
        ("path", text(visit.place.path.display().to_string())),
        ("line", visit.place.line.map_or(Value::Nil, Value::from)),
        ("kind", text(visit.kind.as_str())),
        ("title", text(short_line(&visit.title))),
        ("text", optional(line.map(short_line))),
    ])
}

/// Everything else that is shown, except what the functions above are for.
pub(super) fn item(show: &Show) -> Option<Value> {
    Some(Value::Array(match show {
        Show::TakenBack(chat, id, written) => {
            vec!["taken_back".into(), chat.0.into(), id.0.into(), text(written.as_str())]
        }
        Show::UserEvent(event) => {
            let (name, data) = user_event(event);
            vec!["event".into(), name.into(), data]
        }
        Show::Message(level, message) => {
            let level = match level {
                MessageLevel::Info => "info",
                MessageLevel::Warn => "warn",
                MessageLevel::Error => "error",
            };
            vec!["notify".into(), level.into(), text(message.as_str())]
        }
        Show::SignIn(chat, offer) => {
            let methods = offer.methods.iter().map(|(method, launch)| sign_in_method(method, launch.as_ref()));
            vec!["sign_in".into(), chat.0.into(), text(offer.agent.as_str()), Value::Array(methods.collect())]
        }
        Show::Elicitations(views) => {
            vec!["elicitations".into(), Value::Array(views.iter().map(elicitation::view).collect())]
        }
        Show::ElicitationProblems(request, problems) => {
            let problems = problems.iter().map(|(name, problem)| (text(name.as_str()), text(problem.as_str())));
            vec!["elicitation_problems".into(), request.0.into(), Value::Map(problems.collect())]
        }
        Show::UndoConflicts(chat, turn, paths) => {
            let paths = paths.iter().map(|path| text(path.display().to_string())).collect();
            vec!["undo_conflicts".into(), chat.0.into(), (*turn).into(), Value::Array(paths)]
        }
        Show::Status(..)
        | Show::Permissions(_)
        | Show::Proposals(..)
        | Show::Queued(..)
        | Show::Commands(..)
        | Show::Options(..)
        | Show::Follow(..) => {
            return None;
        }
    }))
}

fn sign_in_method(method: &SignInMethod, launch: Option<&Launch>) -> Value {
    let launched = launch.map_or(Value::Nil, |launch| {
        let env = launch.env.iter().map(|(name, value)| (text(name.as_str()), text(value.as_str())));
        map([
            ("command", Value::Array(launch.command.iter().map(|word| text(word.as_str())).collect())),
            ("env", Value::Map(env.collect())),
            ("cwd", text(launch.cwd.display().to_string())),
        ])
    });
    map([
        ("id", text(method.id.as_str())),
        ("name", text(method.name.as_str())),
        ("description", optional(method.description.as_deref())),
        ("launch", launched),
    ])
}

fn user_event(event: &UserEvent) -> (&'static str, Value) {
    let chat_value = |chat: &ChatId| ("chat", Value::from(chat.0));
    match event {
        UserEvent::SessionStart(chat, session) => {
            ("AgentChatSessionStart", map([chat_value(chat), ("session_id", text(session.to_string()))]))
        }
        UserEvent::TurnStart(chat, turn) => ("AgentChatTurnStart", map([chat_value(chat), ("turn", (*turn).into())])),
        UserEvent::TurnEnd(chat, stop_reason) => {
            ("AgentChatTurnEnd", map([chat_value(chat), ("stop_reason", text(stop_reason.as_str()))]))
        }
        UserEvent::ToolCall(chat, id, status) => (
            "AgentChatToolCall",
            map([chat_value(chat), ("tool_call_id", text(id.as_str())), ("status", text(status.as_str()))]),
        ),
        UserEvent::Permission(chat, request) => {
            ("AgentChatPermission", map([chat_value(chat), ("request", request.0.into())]))
        }
        UserEvent::Elicitation(chat, request) => {
            ("AgentChatElicitation", map([chat_value(chat), ("request", request.0.into())]))
        }
        UserEvent::PermissionResolved(chat, request, option) => (
            "AgentChatPermissionResolved",
            map([chat_value(chat), ("request", request.0.into()), ("option", optional(option.as_deref()))]),
        ),
        UserEvent::PermissionDecided { chat, request, option, action, title, rule } => (
            "AgentChatPermissionResolved",
            map([
                chat_value(chat),
                ("request", request.0.into()),
                ("option", optional(option.as_deref())),
                ("automatic", true.into()),
                ("action", action.as_str().into()),
                ("title", text(short_line(title))),
                ("rule", text(rule.as_str())),
            ]),
        ),
        UserEvent::FileChanged(chat, path) => {
            ("AgentChatFileChanged", map([chat_value(chat), ("path", text(path.display().to_string()))]))
        }
        UserEvent::Error(chat, message) => {
            ("AgentChatError", map([chat_value(chat), ("message", text(message.as_str()))]))
        }
    }
}
