//! A list of sessions, as Lua gets it: what an agent lists and what is kept, each session once.

use std::collections::{HashMap, HashSet};

use rmpv::Value;

use crate::core::effect::SessionInfo;
use crate::store::SessionRow;

/// Joins what `agent` lists with what is kept, as maps for Lua. Those of the agent come as it has them, the others after
/// them; Lua sorts them.
pub fn merged(agent: &str, listed: Vec<SessionInfo>, kept: &[SessionRow]) -> Value {
    let mut newest: HashMap<String, &SessionRow> = HashMap::new();
    for row in kept.iter().filter(|row| row.about.agent == agent) {
        // The newest comes first.
        newest.entry(row.about.id.clone()).or_insert(row);
    }
    let mut shown = HashSet::new();
    let mut items: Vec<Value> = Vec::new();
    for session in listed {
        let row = newest.get(&*session.id.0).copied();
        shown.extend(row.map(|row| row.key));
        items.push(of_agent(agent, session, row));
    }
    items.extend(kept.iter().filter(|row| !shown.contains(&row.key)).map(of_store));
    Value::Array(items)
}

fn of_agent(agent: &str, session: SessionInfo, row: Option<&SessionRow>) -> Value {
    let title = session.title.or_else(|| row.and_then(|row| row.about.title.clone()));
    map([
        ("agent", agent.into()),
        ("session", (*session.id.0).into()),
        ("cwd", session.cwd.to_string_lossy().into_owned().into()),
        ("title", or_nil(title)),
        ("updated_at", or_nil(session.updated_at)),
        ("listed", true.into()),
        ("key", or_nil(row.map(|row| row.key.0))),
        ("updated_ms", or_nil(row.map(|row| row.updated_at_ms))),
        ("opening", or_nil(row.and_then(|row| row.opening.clone()))),
        ("last", or_nil(row.and_then(|row| row.last.clone()))),
    ])
}

fn of_store(row: &SessionRow) -> Value {
    map([
        ("agent", row.about.agent.as_str().into()),
        ("session", row.about.id.as_str().into()),
        ("cwd", row.about.cwd.to_string_lossy().into_owned().into()),
        ("title", or_nil(row.about.title.clone())),
        ("listed", false.into()),
        ("key", row.key.0.into()),
        ("updated_ms", row.updated_at_ms.into()),
        ("opening", or_nil(row.opening.clone())),
        ("last", or_nil(row.last.clone())),
    ])
}

fn map<const N: usize>(pairs: [(&str, Value); N]) -> Value {
    Value::Map(pairs.into_iter().map(|(name, value)| (name.into(), value)).collect())
}

fn or_nil(value: Option<impl Into<Value>>) -> Value {
    value.map_or(Value::Nil, Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::ids::{SessionId, SessionKey};
    use crate::nvim::incoming::{array, get, string};
    use crate::store::About;

    fn row(key: u64, agent: &str, id: &str) -> SessionRow {
        let about = About { agent: agent.into(), id: id.into(), cwd: "/p".into(), title: Some(format!("kept {key}")) };
        let (opening, last) = (Some("do it".to_owned()), None);
        SessionRow { key: SessionKey(key), about, opening, last, created_at_ms: 1, updated_at_ms: 2 }
    }

    #[test]
    fn a_session_that_is_listed_and_kept_is_there_once() {
        let listed = |id: &str, title: Option<&str>| SessionInfo {
            id: SessionId::from(id),
            cwd: "/p".into(),
            title: title.map(str::to_owned),
            updated_at: None,
        };
        let kept = vec![row(1, "a", "one"), row(2, "b", "one"), row(3, "a", "gone"), row(4, "a", "one")];
        let list = merged("a", vec![listed("one", None), listed("two", Some("T"))], &kept);
        let list = Value::Map(vec![("list".into(), list)]);
        let told: Vec<_> = array(&list, "list")
            .iter()
            .map(|item| (string(item, "agent"), string(item, "session"), get(item, "key").and_then(Value::as_u64)))
            .collect();
        let expected = [
            ("a", "one", Some(1)),
            ("a", "two", None),
            ("b", "one", Some(2)),
            ("a", "gone", Some(3)),
            // The agent has used the id again: the older one can be read, but not opened.
            ("a", "one", Some(4)),
        ];
        assert_eq!(told, expected.map(|(agent, id, key)| (Some(agent.to_owned()), Some(id.to_owned()), key)));
        assert_eq!(string(&array(&list, "list")[0], "title").as_deref(), Some("kept 1"));
        assert_eq!(string(&array(&list, "list")[1], "title").as_deref(), Some("T"));
    }
}
