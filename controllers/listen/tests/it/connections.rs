//! Connections: what each may take, and who goes when there are too many.

use std::time::Duration;

use koord_listen::Limits;

use crate::client::{SOON, start};

const LIMIT: Duration = Duration::from_millis(300);

fn limits() -> Limits {
    Limits { header_max: LIMIT, idle_max: LIMIT * 3, ..Limits::default() }
}

#[tokio::test]
async fn a_connection_without_a_request_is_closed_in_time() {
    let running = start(limits());
    let mut silent = running.connect().await;
    let (_, after) = silent.closed().await;
    assert!(after >= LIMIT && after < SOON, "{after:?}");
    running.has(0).await;
}

#[tokio::test]
async fn a_head_that_drips_is_closed_in_time_also_after_a_request() {
    let running = start(limits());
    let mut dripping = running.connect().await;
    assert!(dripping.get("/length").await.starts_with("HTTP/1.1 200"));
    for byte in "GET /length HTTP/1.1\r\nhost: a-very-long-name-of-a-host-that-takes-for-ever".bytes() {
        dripping.try_send(&[byte]).await;
        if running.server.connections() == 0 {
            return;
        }
        tokio::time::sleep(LIMIT / 10).await;
    }
    panic!("the connection is still open");
}

#[tokio::test]
async fn a_connection_may_idle_longer_than_a_head_may_take_but_not_for_ever() {
    let running = start(limits());
    let mut idle = running.connect().await;
    assert!(idle.get("/length").await.starts_with("HTTP/1.1 200"));
    let (_, after) = idle.closed().await;
    assert!(after >= LIMIT * 3 && after < SOON, "{after:?}");
}

#[tokio::test]
async fn an_answer_may_take_longer_than_every_limit() {
    let running =
        start(Limits { idle_max: LIMIT, body_max: LIMIT, handshake_max: LIMIT, write_stall_max: LIMIT, ..limits() });
    let mut watch = running.connect().await;
    let mut text = watch.get("/watch").await;
    while !text.contains("line 1") {
        let part = watch.receive().await;
        assert!(!part.is_empty(), "the watch was cut after {text:?}");
        text.push_str(&part);
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_its_answer_is_closed() {
    let running = start(Limits { write_stall_max: LIMIT, ..limits() });
    let mut deaf = running.connect().await;
    deaf.send("GET /endless HTTP/1.1\r\nhost: x\r\n\r\n").await;
    running.has(1).await;
    running.has(0).await;
}

#[tokio::test]
async fn a_new_client_is_answered_however_many_are_silent() {
    let most = 8;
    let running = start(Limits { connections_max: most, connections_per_peer_max: most, ..Limits::default() });
    let mut busy = running.connect().await;
    assert!(busy.get("/length").await.starts_with("HTTP/1.1 200"));
    let mut silent = Vec::new();
    for _ in 0..most * 4 {
        silent.push(running.connect().await);
    }
    let mut new = running.connect().await;
    assert!(new.get("/length").await.starts_with("HTTP/1.1 200"));
    assert!(busy.get("/length").await.starts_with("HTTP/1.1 200"), "what has served is kept");
    assert!(running.server.connections() <= most);
    assert!(running.server.turned_away() >= (most * 3) as u64);
}

#[tokio::test]
async fn handlers_know_the_address_of_their_client() {
    let running = start(Limits::default());
    let mut client = running.connect().await;
    client.send("GET /client HTTP/1.1\r\nhost: x\r\n\r\n").await;
    let answer = client.receive().await;
    assert!(answer.ends_with(&format!("\r\n{}", client.address())), "{answer}");
}
