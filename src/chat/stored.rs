//! Responses that are kept: at the endpoint, or here.

use serde_json::{Value, json};

use super::args::{EndpointArgs, StoredCommand};
use super::failure::{Failure, Kind};
use super::kept;
use super::print;
use crate::responses::{Client, Error, Reason, Response};
use crate::store::Store;

const DEFAULT_LIMIT: usize = 20;
const MAX_LIMIT: i64 = 100;

/// Carries out a command and returns what is printed.
pub(crate) async fn run(command: StoredCommand) -> Result<Value, Failure> {
    match command {
        StoredCommand::Get { id, include, endpoint } => get(&id_of(id)?, &include_names(&include)?, &endpoint).await,
        StoredCommand::ListInputItems { id, after, before, limit, order, include, endpoint } => {
            let page = Page { after, before, limit: limit_of(limit)?, ascending: order_of(order.as_deref())? };
            input_items(&id_of(id)?, &page, &include_names(&include)?, &endpoint).await
        }
        StoredCommand::Delete { id, endpoint } => delete(&id_of(id)?, &endpoint).await,
        StoredCommand::List { limit, before } => list(limit_of(limit)?, before.as_deref()),
    }
}

struct Page {
    after: Option<String>,
    before: Option<String>,
    limit: Option<usize>,
    ascending: Option<bool>,
}

fn id_of(id: Option<String>) -> Result<String, Failure> {
    id.filter(|id| !id.trim().is_empty()).ok_or_else(|| {
        Failure::validation("missing response id").hint("`agentchat chat list` shows those of this machine")
    })
}

fn limit_of(limit: Option<i64>) -> Result<Option<usize>, Failure> {
    let wrong = || Failure::validation(format!("--limit has to be between 1 and {MAX_LIMIT}"));
    limit
        .map(|limit| usize::try_from(limit).ok().filter(|_| (1..=MAX_LIMIT).contains(&limit)).ok_or_else(wrong))
        .transpose()
}

fn order_of(order: Option<&str>) -> Result<Option<bool>, Failure> {
    match order {
        None => Ok(None),
        Some("asc") => Ok(Some(true)),
        Some("desc") => Ok(Some(false)),
        Some(other) => Err(Failure::validation(format!("unsupported order \"{other}\"")).hint("asc or desc")),
    }
}

/// The short names of what can be included, and the whole ones.
fn include_names(names: &[String]) -> Result<Vec<String>, Failure> {
    const SHORT: &[(&str, &str)] = &[
        ("image_url", "message.input_image.image_url"),
        ("audio_url", "message.input_audio.audio_url"),
        ("encrypted_content", "reasoning.encrypted_content"),
    ];
    let whole = |name: &String| match SHORT.iter().find(|(short, _)| short == name) {
        Some((_, whole)) => Ok((*whole).to_owned()),
        None if name.contains('.') => Ok(name.clone()),
        None => Err(Failure::validation(format!("unsupported include \"{name}\""))
            .hint("image_url, audio_url, encrypted_content")),
    };
    names.iter().map(whole).collect()
}

fn store() -> Result<Store, Failure> {
    kept::open().map_err(|error| Failure::general(error.to_string()))
}

fn of_store<T>(result: Result<T, crate::store::StoreError>) -> Result<T, Failure> {
    result.map_err(|error| Failure::general(error.to_string()))
}

fn not_found(id: &str) -> Failure {
    Failure {
        kind: Kind::Api,
        message: format!("InvalidParameter.PreviousResponseNotFound: there is no response \"{id}\""),
        hint: Some(
            "it was not stored, has expired or was deleted: `agentchat chat list` shows those of this machine"
                .to_owned(),
        ),
    }
}

/// The endpoint's client, if the endpoint keeps responses and can be asked about them. A response that is kept here tells by
/// itself that it need not be.
async fn keeper(id: &str, args: &EndpointArgs) -> Result<Option<Client>, Failure> {
    let is_here = store().is_ok_and(|store| store.response(id).is_ok_and(|kept| kept.is_some()));
    let explicit = args.profile.is_some() || args.base_url.is_some();
    match super::choose(args, false).await {
        Ok(chosen) => {
            let capabilities = chosen.profile.dialect.capabilities();
            let same = !is_here
                || explicit
                || of_store(store()?.response(id))?
                    .is_some_and(|kept| kept.endpoint == chosen.endpoint.base_url.to_string());
            if capabilities.manages_responses && same { Ok(Some(super::client(chosen.endpoint)?)) } else { Ok(None) }
        }
        Err(_) if is_here && !explicit => Ok(None),
        Err(failure) => Err(failure),
    }
}

fn is_missing(error: &Error) -> bool {
    matches!(error, Error::Api(api) if api.status == Some(404) || api.reason() == Reason::ResponseNotFound)
}

async fn get(id: &str, include: &[String], args: &EndpointArgs) -> Result<Value, Failure> {
    let response = match keeper(id, args).await? {
        Some(client) => match client.get(id, include).await {
            Ok(response) => response,
            Err(error) if is_missing(&error) => {
                local(id)?.ok_or_else(|| Failure::of_request("get_responses", &error))?
            }
            Err(error) => return Err(Failure::of_request("get_responses", &error)),
        },
        None => local(id)?.ok_or_else(|| not_found(id))?,
    };
    let usage = response.usage().unwrap_or_default();
    super::to_value(&print::flat(&response, usage, &[]))
}

fn local(id: &str) -> Result<Option<Response>, Failure> {
    Ok(of_store(store()?.response(id))?.as_ref().and_then(kept::response_of))
}

async fn input_items(id: &str, page: &Page, include: &[String], args: &EndpointArgs) -> Result<Value, Failure> {
    let here = || -> Result<Option<Value>, Failure> {
        Ok(of_store(kept::input_of(&store()?, id))?.map(|items| cut(items, page)))
    };
    let Some(client) = keeper(id, args).await? else { return here()?.ok_or_else(|| not_found(id)) };
    let mut query: Vec<(String, String)> = include.iter().map(|name| ("include".to_owned(), name.clone())).collect();
    let order = page.ascending.map(|ascending| if ascending { "asc" } else { "desc" }.to_owned());
    let limit = page.limit.map(|limit| limit.to_string());
    for (name, value) in
        [("after", page.after.clone()), ("before", page.before.clone()), ("limit", limit), ("order", order)]
    {
        query.extend(value.map(|value| (name.to_owned(), value)));
    }
    match client.input_items(id, &query).await {
        Ok(items) => Ok(items),
        Err(error) if is_missing(&error) => here()?.ok_or_else(|| Failure::of_request("list_input_items", &error)),
        Err(error) => Err(Failure::of_request("list_input_items", &error)),
    }
}

/// A page as endpoints cut it: newest first unless asked otherwise.
fn cut(mut items: Vec<Value>, page: &Page) -> Value {
    if page.ascending != Some(true) {
        items.reverse();
    }
    let place =
        |items: &[Value], id: &str| items.iter().position(|item| item.get("id").and_then(Value::as_str) == Some(id));
    if let Some(at) = page.after.as_deref().and_then(|id| place(&items, id)) {
        items.drain(..=at);
    }
    if let Some(at) = page.before.as_deref().and_then(|id| place(&items, id)) {
        items.truncate(at);
    }
    let limit = page.limit.unwrap_or(DEFAULT_LIMIT);
    let has_more = items.len() > limit;
    items.truncate(limit);
    let id_of = |item: Option<&Value>| item.and_then(|item| item.get("id")).cloned().unwrap_or_default();
    let (first, last) = (id_of(items.first()), id_of(items.last()));
    json!({"object": "list", "data": items, "first_id": first, "last_id": last, "has_more": has_more})
}

async fn delete(id: &str, args: &EndpointArgs) -> Result<Value, Failure> {
    let there = match keeper(id, args).await? {
        Some(client) => match client.delete(id).await {
            Ok(()) => true,
            Err(error) if is_missing(&error) => false,
            Err(error) => return Err(Failure::of_request("delete_responses", &error)),
        },
        None => false,
    };
    let here = of_store(store()?.delete_response(id))?;
    if there || here { Ok(json!({"id": id, "deleted": true})) } else { Err(not_found(id)) }
}

fn list(limit: Option<usize>, before: Option<&str>) -> Result<Value, Failure> {
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    let mut kept = of_store(store()?.responses(u32::try_from(limit + 1).unwrap_or(u32::MAX), before))?;
    let has_more = kept.len() > limit;
    kept.truncate(limit);
    let row = |kept: &crate::store::KeptResponse| {
        let response = kept::response_of(kept).unwrap_or_default();
        json!({
            "id": kept.id,
            "created_at": kept.created_at,
            "endpoint": kept.endpoint,
            "model": response.model(),
            "status": response.text_field("status"),
            "previous_response_id": kept.previous_id,
            "expire_at": kept.expires_at,
            "prompt": beginning(&prompt_of(kept)),
            "content": beginning(&response.output_text()),
            "function_calls": response.calls().len(),
        })
    };
    Ok(json!({"object": "list", "data": kept.iter().map(row).collect::<Vec<_>>(), "has_more": has_more}))
}

/// The last thing that the user said.
fn prompt_of(kept: &crate::store::KeptResponse) -> String {
    let items: Vec<Value> = serde_json::from_str(&kept.input).unwrap_or_default();
    let text = |item: &Value| -> Option<String> {
        (item.get("role")?.as_str()? == "user").then_some(())?;
        let parts = item.get("content")?.as_array()?;
        Some(parts.iter().filter_map(|part| part.get("text")?.as_str()).collect::<Vec<_>>().join(" "))
    };
    items.iter().rev().find_map(text).unwrap_or_default()
}

fn beginning(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut shown: String = line.chars().take(80).collect();
    if shown.len() < line.len() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_cut_as_endpoints_do() {
        let items: Vec<Value> = (1..=5).map(|n| json!({"id": format!("i{n}")})).collect();
        let page = |after: Option<&str>, before: Option<&str>, limit, ascending| {
            let page = Page { after: after.map(str::to_owned), before: before.map(str::to_owned), limit, ascending };
            let page = cut(items.clone(), &page);
            let ids: Vec<String> =
                page["data"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect();
            (ids.join(" "), page["has_more"] == true)
        };
        assert_eq!(page(None, None, None, None), ("i5 i4 i3 i2 i1".to_owned(), false));
        assert_eq!(page(None, None, Some(2), Some(true)), ("i1 i2".to_owned(), true));
        assert_eq!(page(Some("i4"), None, Some(2), None), ("i3 i2".to_owned(), true));
        assert_eq!(page(None, Some("i2"), None, None), ("i5 i4 i3".to_owned(), false));
    }

    #[test]
    fn arguments_are_checked() {
        assert_eq!(id_of(None).unwrap_err().message, "missing response id");
        assert!(limit_of(Some(0)).is_err() && limit_of(Some(101)).is_err() && limit_of(Some(100)).is_ok());
        assert_eq!(order_of(Some("up")).unwrap_err().message, "unsupported order \"up\"");
        assert_eq!(include_names(&["image_url".into()]).unwrap(), ["message.input_image.image_url"]);
        assert!(include_names(&["nothing".into()]).is_err());
    }
}
