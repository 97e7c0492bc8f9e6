//! An API server that serves nothing for a while: how soon pods are bound after it has recovered.

use std::convert::Infallible;

use futures::{StreamExt as _, TryStreamExt as _};
use http::StatusCode;
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, StreamBody};
use tokio::sync::watch;

use super::{bindings::gangs, *};

/// A client of a server that answers with this status instead, and ends its watches, while there is one.
fn interrupted(server: &Server, status: &watch::Sender<Option<StatusCode>>) -> Client {
    let (router, status) = (server.router(), status.subscribe());
    let service = service_fn(move |request: http::Request<Body>| {
        let (router, mut status) = (router.clone(), status.clone());
        async move {
            let refused = *status.borrow();
            if let Some(refused) = refused {
                let text = json!({"kind": "Status", "code": refused.as_u16(), "message": "out of order"}).to_string();
                let body = Full::from(text).map_err(|never| match never {}).boxed_unsync();
                let answer = http::Response::builder().status(refused).body(body);
                return Ok::<_, Infallible>(answer.unwrap());
            }
            let (head, body) = router.oneshot(request).await?.into_parts();
            let ends = async move {
                if status.wait_for(Option::is_some).await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            let frames = body.into_data_stream().take_until(Box::pin(ends)).map_ok(Frame::data);
            Ok(http::Response::from_parts(head, StreamBody::new(frames).boxed_unsync()))
        }
    });
    Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn within_two_seconds_after_an_outage_pods_are_bound_again() {
    for (status, seconds) in [(500, 14), (429, 9), (503, 60), (500, 200)] {
        let stage = Stage::new();
        stage.add_node("only", "8");
        let out = watch::Sender::new(None);
        let client = interrupted(&stage.server, &out);
        let (manager, ..) = stage.program_agreeing(Duration::from_secs(20), client, gangs(), "one");
        let stop = CancellationToken::new();
        let running = tokio::spawn(manager.run(stop.clone()));
        stage.add_pod("before", "1");
        stage.pass(60).await;
        assert_eq!(stage.place("before"), "only");
        // A binding is on its way when the outage begins, another pod comes meanwhile, and one after it.
        stage.add_pod("bound", "1");
        out.send_replace(Some(StatusCode::from_u16(status).unwrap()));
        stage.pass(seconds / 2).await;
        stage.add_pod("meanwhile", "1");
        stage.pass(seconds - seconds / 2).await;
        out.send_replace(None);
        stage.add_pod("after", "1");
        stage.pass(2).await;
        let places = ["bound", "meanwhile", "after"].map(|name| stage.place(name));
        assert_eq!(places, ["only"; 3].map(str::to_owned), "{status} for {seconds} s");
        stop.cancel();
        running.await.unwrap().unwrap();
    }
}
