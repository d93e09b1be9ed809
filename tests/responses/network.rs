//! Certificates. `tests/tls/` has an authority whose key is gone, and a server's certificate of it for localhost.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use agentchat::responses::{BaseUrl, Client, Endpoint, Error};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::responses_server::{Kind, Server};
use crate::{ask, endpoint};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tls").join(name)
}

/// Answers every request over TLS.
fn tls_server() -> SocketAddr {
    let certificate = CertificateDer::from_pem_file(file("server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(config.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut tls = rustls::StreamOwned::new(connection, stream.unwrap());
            let body = r#"{"id":"r","status":"completed","output":[{"type":"message","content":"over TLS"}]}"#;
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            // A client that does not trust it hangs up.
            if tls.read(&mut [0; 4096]).is_ok_and(|read| read > 0) {
                let _ = tls.write_all(answer.as_bytes());
                let _ = tls.read(&mut [0; 1]);
            }
        }
    });
    address
}

fn https(address: SocketAddr, ca_file: Option<PathBuf>) -> Endpoint {
    let base_url = BaseUrl::parse(&format!("https://localhost:{}/v1", address.port())).unwrap();
    Endpoint { base_url, ca_file, ..endpoint(&Server::start(Kind::OpenAi), Kind::OpenAi) }
}

#[tokio::test]
async fn an_authority_of_ones_own_is_trusted_when_it_is_named() {
    let client = Client::new(https(tls_server(), Some(file("authority.pem")))).unwrap();
    assert_eq!(client.create(&ask("hi")).await.unwrap().output_text(), "over TLS");
}

#[tokio::test]
async fn a_certificate_that_is_not_trusted_is_told_with_the_way_out() {
    // Where the system has no certificates at all, there is no client without a file of them.
    let Ok(client) = Client::new(https(tls_server(), None)) else { return };
    let error = client.create(&ask("hi")).await.unwrap_err();
    assert!(matches!(error, Error::Connect { .. }), "{error:?}");
    assert!(error.to_string().contains("certificate") && error.to_string().contains("ca_file"), "{error}");
}

#[test]
fn a_file_of_certificates_that_is_none_is_named() {
    let address = tls_server();
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "").unwrap();
    for path in [PathBuf::from("/nowhere/ca.pem"), empty] {
        let error = Client::new(https(address, Some(path.clone()))).unwrap_err().to_string();
        assert!(error.contains(path.to_str().unwrap()), "{error}");
    }
}

#[tokio::test]
async fn a_server_without_https_is_an_error_and_no_hang() {
    let plain = Server::start(Kind::OpenAi);
    let Ok(client) = Client::new(https(plain.address(), Some(file("authority.pem")))) else { return };
    let error = client.create(&ask("hi")).await.unwrap_err();
    assert!(error.hint().is_some(), "{error}");
}
