//! Bodies of requests: what each may take, and who gives way when memory is short.

use std::time::{Duration, Instant};

use koord_listen::{BodyLimits, Limits};

use crate::client::{BODY_BYTES_MAX, Client, Running, start};

fn budget(bytes_max: usize) -> Limits {
    Limits { bodies: BodyLimits { bytes_max, ..BodyLimits::default() }, ..Limits::default() }
}

async fn post(running: &Running, announced: usize, sent: usize) -> Client {
    let mut client = running.connect().await;
    client.send(&format!("POST /length HTTP/1.1\r\nhost: x\r\ncontent-length: {announced}\r\n\r\n")).await;
    client.try_send(&vec![b'x'; sent]).await;
    client
}

#[tokio::test]
async fn a_body_is_read_whole_and_one_that_is_too_long_is_refused() {
    let running = start(Limits::default());
    for length in [0, 1, 70_000, BODY_BYTES_MAX] {
        let answer = post(&running, length, length).await.receive().await;
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with(&format!("\r\n{length}")), "{answer}");
    }
    let answer = post(&running, BODY_BYTES_MAX + 1, 10).await.receive().await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
}

#[tokio::test]
async fn a_body_that_does_not_come_is_given_up() {
    let body_max = Duration::from_millis(300);
    let running = start(Limits { body_max, ..Limits::default() });
    let begin = Instant::now();
    let answer = post(&running, 100, 99).await.receive().await;
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("did not arrive"), "{answer}");
    assert!(begin.elapsed() >= body_max);
}

#[tokio::test]
async fn withheld_bodies_give_way_to_one_that_comes() {
    let running = start(budget(3 * BODY_BYTES_MAX));
    let mut withheld = Vec::new();
    for _ in 0..12 {
        withheld.push(post(&running, BODY_BYTES_MAX, BODY_BYTES_MAX - 1).await);
    }
    let begin = Instant::now();
    let answer = post(&running, 3000, 3000).await.receive().await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("3000"), "{answer}");
    assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
    let answer = withheld[0].receive().await;
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("try again"), "{answer}");
}

#[tokio::test]
async fn a_body_longer_than_the_budget_is_refused_after_a_while() {
    let mut limits = budget(BODY_BYTES_MAX / 2);
    limits.bodies.wait_max = Duration::from_millis(300);
    let running = start(limits);
    let answer = post(&running, BODY_BYTES_MAX, BODY_BYTES_MAX).await.receive().await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
}
