//! `agentchat profile`, and which endpoint is taken.

use serde_json::{Value, json};

use crate::responses_server::{Answer, Kind, Server};
use crate::{User, write_script};

#[test]
fn a_profile_is_added_listed_tried_and_used() {
    let server = Server::start(Kind::OpenAi);
    server.key("key-of-the-manager");
    let user = User::new();
    let manager = user.home.path().join("manager");
    write_script(&manager, "#!/bin/sh\necho \"key-of-the-$1\"\necho more\n");
    let manager = manager.to_str().unwrap();
    let url = server.base_url();
    let add = [
        "profile",
        "add",
        "work",
        "--dialect",
        "openai",
        "--base-url",
        &url,
        "--key-command",
        manager,
        "--key-command",
        "manager",
        "--model",
        "m",
        "--header",
        "x-team=editors",
        "--default",
    ];
    assert_eq!(user.run(&add).code, 0);
    assert!(user.run(&add).refused().contains("--replace"));

    let list = user.run(&["profile", "list", "--json"]).json();
    let work = list["profiles"].as_array().unwrap().iter().find(|row| row["name"] == "work").unwrap().clone();
    assert_eq!((&work["default"], &work["base_url"], &work["model"]), (&json!(true), &json!(url), &json!("m")));
    let shown = user.run(&["profile", "list"]);
    assert!(shown.text().contains("work (default)") && shown.text().contains("ark"), "{shown:#?}");

    server.answer(Answer::new().text("ready"));
    let tried = user.run(&["profile", "test", "work"]);
    assert!(tried.text().contains("models    m\n") && tried.text().contains("\"ready\" from m"), "{tried:#?}");
    assert!(!format!("{tried:?}").contains("key-of-the"), "{tried:#?}");

    server.answer(Answer::new().text("Hello"));
    assert_eq!(user.chat(&["hi"]).json()["content"], "Hello");
    assert_eq!(server.requests().pop().unwrap().header("x-team"), Some("editors"));
}

#[test]
fn a_key_is_not_written_down() {
    let user = User::new();
    let message = user.run(&["profile", "add", "a", "--key-env", "sk-0123456789abcdef"]).refused();
    assert!(message.contains("not the key itself"), "{message}");
    assert!(!user.config().exists());
}

#[test]
fn an_endpoint_that_does_not_work_is_told() {
    let server = Server::start(Kind::OpenAi);
    server.key("another");
    let user = User::of(&server, Kind::OpenAi);
    let error = user.run(&["profile", "test"]).error(5);
    assert!(error["hint"].as_str().unwrap().contains("key"), "{error}");
    assert!(user.run(&["profile", "test", "nobody"]).refused().contains("there is no profile \"nobody\""));
}

/// The URL that would be asked.
#[track_caller]
fn url(user: &User, environment: &[(&str, &str)], arguments: &[&str]) -> Value {
    let mut command = user.command(&[&["chat", "hi", "--model", "m", "--dry-run"], arguments].concat());
    crate::outcome(command.envs(environment.iter().copied()).output().unwrap()).json()["url"].clone()
}

#[test]
fn the_endpoint_is_the_one_that_is_named_or_configured_or_has_a_key() {
    let nobody = User::new();
    assert_eq!(url(&nobody, &[("OPENAI_API_KEY", "k")], &[]), "https://api.openai.com/v1/responses");
    assert_eq!(url(&nobody, &[("ARK_API_KEY", "k")], &[]), "https://ark.cn-beijing.volces.com/api/v3/responses");
    assert_eq!(
        url(&nobody, &[("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", "https://x/v1")], &[]),
        "https://x/v1/responses"
    );
    assert_eq!(url(&nobody, &[], &["--profile", "ollama"]), "http://localhost:11434/v1/responses");
    assert_eq!(url(&nobody, &[("OLLAMA_HOST", "box")], &["--profile", "ollama"]), "http://box:11434/v1/responses");
    let user = User::with_config("[profiles.a]\nbase_url = \"https://a/v1\"\n");
    assert_eq!(url(&user, &[("OPENAI_API_KEY", "k")], &[]), "https://a/v1/responses");
    let user = User::with_config(
        "default_profile = \"b\"\n[profiles.a]\nbase_url = \"https://a/v1\"\n[profiles.b]\nbase_url = \"https://b/v1\"\n",
    );
    assert_eq!(url(&user, &[], &[]), "https://b/v1/responses");
    assert_eq!(url(&user, &[("AGENTCHAT_PROFILE", "a")], &[]), "https://a/v1/responses");
    assert_eq!(url(&user, &[("AGENTCHAT_PROFILE", "a")], &["--profile", "b"]), "https://b/v1/responses");
    assert_eq!(url(&user, &[], &["--base-url", "https://c/v1/"]), "https://c/v1/responses");
}

#[test]
fn a_key_only_goes_to_its_own_server() {
    let (own, other) = (Server::start(Kind::OpenAi), Server::start(Kind::OpenAi));
    own.answer(Answer::new());
    other.answer(Answer::new());
    let user = User::with_config(&format!(
        "[profiles.test]\nbase_url = \"{}\"\nmodel = \"m\"\nkey_env = \"KEY\"\nheaders = {{ x-secret = \"env:SECRET\" }}\n",
        own.base_url()
    ));
    for server in [&own, &other] {
        let mut command = user.command(&["chat", "hi", "--base-url", &server.base_url()]);
        assert!(command.env("KEY", "the-key").env("SECRET", "the-secret").status().unwrap().success());
    }
    assert_eq!(own.requests()[0].header("authorization"), Some("Bearer the-key"));
    assert_eq!(own.requests()[0].header("x-secret"), Some("the-secret"));
    assert_eq!((other.requests()[0].header("authorization"), other.requests()[0].header("x-secret")), (None, None));
}

#[test]
fn a_proxy_is_asked_for_others_but_not_for_this_machine() {
    let proxy = Server::start(Kind::OpenAi);
    let local = Server::start(Kind::OpenAi);
    local.answer(Answer::new().text("local"));
    let proxy_url = format!("http://{}", proxy.address());
    let user = User::of(&local, Kind::OpenAi);
    let ask = |arguments: &[&str]| {
        let mut command = user.command(&[&["chat", "hi"], arguments].concat());
        crate::outcome(command.env("HTTP_PROXY", &proxy_url).env("http_proxy", &proxy_url).output().unwrap())
    };
    assert_eq!(ask(&[]).json()["content"], "local");
    assert_eq!(proxy.requests().len(), 0);
    let outcome = ask(&["--base-url", "http://models.invalid/v1", "--api-key", "k", "--model", "m"]);
    assert!(outcome.stderr.contains("warn: the key goes to http://models.invalid without encryption"), "{outcome:#?}");
    assert_eq!(proxy.requests()[0].path, "http://models.invalid/v1/responses");
}
