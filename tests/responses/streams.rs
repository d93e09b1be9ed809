//! Streams as the network and odd servers deliver them.

use agentchat::responses::{Error, Status, Update};
use serde_json::json;

use crate::responses_server::{Answer, Ending, Kind, Server};
use crate::{all, ask, client, impatient, text};

const HELLO: &str = "data: {\"type\":\"response.output_text.delta\",\"item_id\":\"m\",\"delta\":\"Héllo 日本🙂\"}\n\n";
const COMPLETED: &str =
    "data: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"status\":\"completed\"}}\n\n";

async fn play(answer: Answer) -> (Vec<Update>, Result<agentchat::responses::Response, Error>) {
    let server = Server::start(Kind::OpenAi);
    server.answer(answer);
    all(client(&server, Kind::OpenAi).stream(&ask("hi")).await.unwrap()).await
}

#[tokio::test]
async fn characters_are_whole_however_the_bytes_are_cut() {
    for size in [1, 2, 3, 7] {
        let (updates, response) = play(Answer::new().text("Héllo 日本🙂").writes_of(size)).await;
        assert_eq!(text(&updates), "Héllo 日本🙂");
        assert_eq!(response.unwrap().output_text(), "Héllo 日本🙂");
    }
}

#[tokio::test]
async fn other_line_ends_comments_and_unknown_events_are_understood() {
    let stream = format!(
        ": ping\r\n\r\nevent: keepalive\r\ndata: {{\"type\":\"keepalive\"}}\r\n\r\ndata: not json\r\n\r\ndata: 5\r\n\r\n{}event: x.y\ndata: {{\"type\":\"vendor.novelty\",\"a\":[]}}\n\n{COMPLETED}",
        HELLO.replace('\n', "\r\n")
    );
    let (updates, response) = play(Answer::raw([stream])).await;
    assert_eq!(text(&updates), "Héllo 日本🙂");
    assert_eq!(response.unwrap().status(), Status::Completed);
}

#[tokio::test]
async fn the_end_may_be_done_a_last_event_or_both() {
    for end in [COMPLETED.to_owned(), "data: [DONE]\n\n".to_owned(), format!("{COMPLETED}data: [DONE]\n\n")] {
        let (updates, response) = play(Answer::raw([format!("{HELLO}{end}")])).await;
        assert_eq!(updates.last(), Some(&Update::Finished));
        let response = response.unwrap();
        assert_eq!((response.output_text().as_str(), response.status()), ("Héllo 日本🙂", Status::Completed));
    }
}

#[tokio::test]
async fn nothing_is_waited_for_after_the_last_event() {
    let stream = format!("{HELLO}{COMPLETED}: the connection stays open");
    let (updates, response) = play(Answer::raw([stream.clone()]).stall_after(stream.len())).await;
    assert_eq!((text(&updates).as_str(), response.is_ok()), ("Héllo 日本🙂", true));
}

#[tokio::test]
async fn an_error_in_mid_stream_is_told_in_all_three_shapes_with_what_had_come() {
    let of = |ending: fn(String, String) -> Ending| ending("server_error".into(), "The model broke.".into());
    for ending in [of(Ending::ErrorEvent), of(Ending::Failed), of(Ending::BareError)] {
        for kind in Kind::ALL {
            let server = Server::start(kind);
            server.answer(Answer::new().text("Hel").ending(ending.clone()));
            let (updates, response) = all(client(&server, kind).stream(&ask("hi")).await.unwrap()).await;
            let Err(error @ Error::Api(_)) = response else { panic!("{kind:?}, {ending:?}: {response:?}") };
            assert_eq!(text(&updates), "Hel");
            assert!(error.to_string().contains("The model broke."), "{error}");
            assert_eq!(error.partial().unwrap().output_text(), "Hel", "{kind:?}, {ending:?}");
            assert_eq!(server.posts().len(), 1, "it is not sent again");
        }
    }
}

#[tokio::test]
async fn a_stall_ends_after_the_endpoints_patience() {
    let server = Server::start(Kind::OpenAi);
    server.answer(Answer::raw([HELLO]).stall_after(HELLO.len()));
    let (updates, response) = all(impatient(&server).stream(&ask("hi")).await.unwrap()).await;
    assert_eq!(text(&updates), "Héllo 日本🙂");
    let Err(error @ Error::Stalled { .. }) = response else { panic!("{response:?}") };
    assert_eq!(error.partial().unwrap().output_text(), "Héllo 日本🙂");
    tokio::task::spawn_blocking(move || server.wait_hung_up(1)).await.unwrap();
}

#[tokio::test]
async fn comments_are_a_sign_of_life() {
    let server = Server::start(Kind::OpenAi);
    let pieces = (0..12).map(|_| ": still here\n".to_owned()).chain([HELLO.to_owned(), COMPLETED.to_owned()]);
    server.answer(Answer::raw(pieces).paced(crate::SHORT / 3));
    let (updates, response) = all(impatient(&server).stream(&ask("hi")).await.unwrap()).await;
    assert_eq!((text(&updates).as_str(), response.is_ok()), ("Héllo 日本🙂", true));
}

#[tokio::test]
async fn a_connection_that_is_cut_is_no_end() {
    for answer in [Answer::raw([HELLO]), Answer::raw([HELLO]).cut_after(HELLO.len())] {
        let (updates, response) = play(answer).await;
        assert_eq!(text(&updates), "Héllo 日本🙂");
        let Err(error @ Error::Cut { .. }) = response else { panic!("{response:?}") };
        assert_eq!(error.partial().unwrap().output_text(), "Héllo 日本🙂");
    }
}

#[tokio::test]
async fn an_answer_that_is_cut_short_says_why() {
    for kind in [Kind::OpenAi, Kind::Ark, Kind::Ollama, Kind::Vllm] {
        let server = Server::start(kind);
        server.answer(Answer::new().text("Hel").ending(Ending::Incomplete("max_output_tokens".into())));
        let (_, response) = all(client(&server, kind).stream(&ask("hi")).await.unwrap()).await;
        assert_eq!(response.unwrap().status(), Status::Incomplete("max_output_tokens".into()));
    }
}

#[tokio::test]
async fn an_endpoint_that_does_not_stream_is_read_all_the_same() {
    let response = json!({"id": "r", "status": "completed", "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]}]});
    let (updates, whole) = play(Answer::error(200, response)).await;
    assert_eq!((text(&updates).as_str(), whole.unwrap().output_text().as_str()), ("Hello", "Hello"));
    // And the other way round: a stream that nobody asked for.
    let server = Server::start(Kind::OpenAi);
    server.answer(Answer::raw([HELLO, COMPLETED]).header("content-type", "text/event-stream; charset=utf-8"));
    let response = client(&server, Kind::OpenAi).create(&ask("hi")).await.unwrap();
    assert_eq!(response.output_text(), "Héllo 日本🙂");
}

#[tokio::test]
async fn dropping_a_stream_hangs_up() {
    let server = Server::start(Kind::OpenAi);
    server.answer(Answer::raw([HELLO]).stall_after(HELLO.len()));
    let mut stream = client(&server, Kind::OpenAi).stream(&ask("hi")).await.unwrap();
    assert!(stream.next().await.unwrap().is_some());
    drop(stream);
    // The connection is closed by a task of its own.
    tokio::task::spawn_blocking(move || server.wait_hung_up(1)).await.unwrap();
}
