//! Certificates.

use agentchat::responses::{BaseUrl, Client, Endpoint};

use crate::responses_server::{Kind, Server};
use crate::{ask, endpoint};

fn https(server: &Server, ca_file: Option<&str>) -> Endpoint {
    let url = format!("https://{}/v1", server.address());
    Endpoint {
        base_url: BaseUrl::parse(&url).unwrap(),
        ca_file: ca_file.map(Into::into),
        ..endpoint(server, Kind::OpenAi)
    }
}

#[test]
fn a_file_of_certificates_that_is_none_is_named() {
    let server = Server::start(Kind::OpenAi);
    for (file, content) in [("/nowhere/ca.pem", None), ("empty.pem", Some(""))] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(file);
        if let Some(content) = content {
            std::fs::write(&path, content).unwrap();
        }
        let error = Client::new(https(&server, path.to_str())).unwrap_err().to_string();
        assert!(error.contains(path.to_str().unwrap()), "{error}");
    }
}

#[tokio::test]
async fn a_server_without_https_is_an_error_and_no_hang() {
    let server = Server::start(Kind::OpenAi);
    // Where the system has no certificates at all, there is no client.
    let Ok(client) = Client::new(https(&server, None)) else { return };
    let error = client.create(&ask("hi")).await.unwrap_err();
    assert!(error.hint().is_some(), "{error}");
}
