//! Files and URLs that go along.

use serde_json::{Value, json};

use crate::User;
use crate::responses_server::{Answer, Kind, Server};

#[track_caller]
fn content(kind: Kind, name: &str, bytes: &[u8]) -> (Value, Server) {
    let server = Server::start(kind);
    server.answer(Answer::new().text("Hello"));
    let user = User::of(&server, kind);
    let path = user.file(name, bytes);
    user.chat(&["--input", &format!("@{path}"), "What is it?"]).json();
    let content = server.posts()[0]["input"][0]["content"].clone();
    assert_eq!(content[1], json!({"type": "input_text", "text": "What is it?"}));
    (content[0].clone(), server)
}

#[test]
fn pictures_are_inlined() {
    for kind in Kind::ALL {
        let (part, _server) = content(kind, "a.JPG", b"abc");
        assert_eq!(part, json!({"type": "input_image", "detail": "auto", "image_url": "data:image/jpeg;base64,YWJj"}));
    }
}

#[test]
fn documents_go_as_the_endpoint_takes_them() {
    let (part, _server) = content(Kind::OpenAi, "a.pdf", b"abc");
    assert_eq!(
        part,
        json!({"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,YWJj"})
    );
    let (part, server) = content(Kind::Ark, "a.pdf", b"abc");
    assert_eq!(part, json!({"type": "input_file", "file_id": "file-1"}));
    let paths: Vec<String> = server.requests().into_iter().map(|request| request.path).collect();
    assert_eq!(paths, ["/files", "/files/file-1", "/responses"]);
    for kind in [Kind::Ollama, Kind::LlamaCpp, Kind::Vllm] {
        let (part, _server) = content(kind, "a.rs", b"fn main() {}");
        assert_eq!(part["text"], "<file name=\"a.rs\">\nfn main() {}\n</file>");
    }
}

#[test]
fn urls_are_passed_on() {
    let server = Server::start(Kind::Ark);
    server.answer(Answer::new());
    let user = User::of(&server, Kind::Ark);
    user.chat(&[
        "--input",
        "https://x/a.png?s=1",
        "--input",
        "https://x/b.mp4",
        "--input",
        "tos://b/c.mp3",
        "--input",
        "https://x/d",
    ])
    .json();
    let content = &server.posts()[0]["input"][0]["content"];
    assert_eq!(
        *content,
        json!([{"type": "input_image", "detail": "auto", "image_url": "https://x/a.png?s=1"}, {"type": "input_video", "video_url": "https://x/b.mp4"},
            {"type": "input_audio", "audio_url": "tos://b/c.mp3"}, {"type": "input_file", "file_url": "https://x/d"}])
    );
}

#[test]
fn what_an_endpoint_cannot_take_is_refused() {
    let server = Server::start(Kind::Ollama);
    let user = User::of(&server, Kind::Ollama);
    let video = user.file("a.mp4", b"abc");
    assert!(user.chat(&["hi", "--input", &video]).refused().contains("takes no uploads"));
    assert!(user.chat(&["hi", "--input", "."]).refused().contains("input file not found"));
    assert_eq!(server.requests().len(), 0);
}
