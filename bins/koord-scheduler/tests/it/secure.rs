//! The secure port: who may read what there.

use std::{path::Path, process::Stdio};

use envtest::cluster::Options;
use programs::{Running, answer, free};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};

use crate::{
    debug::request,
    program::{Server, answer_to, secure_answer, secure_config, write},
    replicas::is_ready,
    rights::{RBAC, USER},
};

/// Token, user, uid and groups.
const TOKENS: &str = "secret,USER,1\nread,reader,2\nstrange,stranger,3\nall,root,4,system:masters\n";

async fn start(server: &Server, flags: &[&str]) -> (Running, [std::net::SocketAddr; 2]) {
    server.install().await;
    let rules = json!([{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]);
    server.post(&format!("{RBAC}/clusterroles"), &json!({"metadata": {"name": "reader"}, "rules": rules})).await;
    let binding = json!({
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "reader"}],
    });
    server.post(&format!("{RBAC}/clusterrolebindings"), &binding).await;
    let (port, secure) = (free(), free());
    let mut program = server.program(&server.config_of("secret"), port);
    program.arg(format!("--secure-port={}", secure.port())).args(flags).stderr(Stdio::null());
    let mut program = Running(program.spawn().unwrap());
    is_ready(&mut program, port).await;
    (program, [port, secure])
}

#[tokio::test(flavor = "multi_thread")]
async fn at_the_secure_port_everybody_reads_what_the_api_server_permits() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = write(folder.path(), "tokens", &TOKENS.replace("USER", USER));
    let server = Server::start_with(Options { token_file: Some(tokens), ..Options::default() }).await;
    let (mut program, [port, secure]) = start(&server, &[]).await;
    let metrics = "scheduler_pending_pods{queue=\"active\"}";
    for (token, path, code, part) in [
        (None, "/healthz", 200, "ok"),
        (None, "/readyz", 200, "ok"),
        (None, "/metrics", 403, "forbidden: User \"system:anonymous\" cannot get path \"/metrics\""),
        (Some("wrong"), "/metrics", 401, "Unauthorized"),
        (Some("wrong"), "/healthz", 401, "Unauthorized"),
        (Some("strange"), "/metrics", 403, "forbidden: User \"stranger\" cannot get path \"/metrics\""),
        (Some("read"), "/metrics", 200, metrics),
        (Some("read"), "/configz", 403, "forbidden: User \"reader\" cannot get path \"/configz\""),
        (Some("all"), "/metrics", 200, metrics),
    ] {
        let (found, body) = secure_answer(secure, token, path).await;
        assert!(found == code && body.contains(part), "{token:?} {path}: {found} {body}");
    }
    let (code, text) = secure_answer(secure, Some("all"), "/configz").await;
    let shown: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &shown["componentconfig"]["profiles"][0]["schedulerName"]), (200, &json!("koord-scheduler")));
    assert_eq!(shown["componentconfig"]["podMaxBackoffSeconds"], 10, "what is not set is shown too");
    for path in ["/configz", "/apis/v1/queue", "/debug/flags/v", "/metrics/resources"] {
        let (status, body) = request(port, "GET", path, "").await;
        assert!(
            status.contains(" 403 ") && body.contains("--secure-port"),
            "everybody asks there: {path}: {status} {body}"
        );
    }
    let (status, _) = request(port, "PUT", "/debug/flags/v", "9").await;
    assert!(status.contains(" 403 "), "nobody may make it log everything: {status}");
    assert!(answer(port, "/metrics").await.unwrap().contains(metrics), "what names no user is for everybody");
    let services = loop {
        match secure_answer(secure, Some("all"), "/apis/v1/__services__").await {
            (200, services) => break services,
            // It does not lead yet.
            (503, _) => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
            other => panic!("{other:?}"),
        }
    };
    assert!(services.contains("/apis/v1/plugins/ElasticQuota/quotas/:name"), "{services}");
    assert_eq!(secure_answer(secure, Some("all"), "/apis/v1/plugins/Coscheduling/gangs").await, (200, "{}".to_owned()));
    let (_, message) = secure_answer(secure, Some("all"), "/apis/v1/plugins/Coscheduling/gang/ns/none").await;
    assert_eq!(message, "cannot find gang ns/none");
    let set = |token: &str| {
        let mut config = secure_config(secure);
        config.auth_info.token = Some(token.to_owned().into());
        answer_to(config, http::Request::put("/debug/flags/s").body(b"3".to_vec()).unwrap())
    };
    let refused = "forbidden: User \"reader\" cannot put path \"/debug/flags/s\"".to_owned();
    assert_eq!(set("read").await, (403, refused));
    assert_eq!(set("all").await, (200, "successfully set debugTopNScores to 3".to_owned()));
    assert_eq!(program.terminate(), Some(0));
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Files with a certificate of this name and organization, and its key.
fn signed(folder: &Path, issuer: &CertifiedIssuer<'static, KeyPair>, name: &str, organization: &str) -> [String; 2] {
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.distinguished_name.push(DnType::OrganizationName, organization);
    let issuer: &Issuer<'_, KeyPair> = issuer;
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, issuer).unwrap();
    [("crt", certificate.pem()), ("key", key.serialize_pem())]
        .map(|(kind, text)| write(folder, &format!("{name}.{kind}"), &text).display().to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn users_are_known_by_their_certificates_and_by_the_headers_of_a_front_proxy() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let tokens = write(folder, "tokens", &TOKENS.replace("USER", USER));
    let server = Server::start_with(Options { token_file: Some(tokens), ..Options::default() }).await;
    let (users, proxies, strangers) = (authority(), authority(), authority());
    let flags = [
        format!("--client-ca-file={}", write(folder, "users.crt", &users.pem()).display()),
        format!("--requestheader-client-ca-file={}", write(folder, "proxies.crt", &proxies.pem()).display()),
        "--requestheader-allowed-names=front".to_owned(),
        "--disabled-metrics=scheduler_pending_pods,kube_pod_resource_request".to_owned(),
    ];
    let (mut program, [port, secure]) = start(&server, &flags.each_ref().map(String::as_str)).await;
    for (certificate, says, path, code, part) in [
        (signed(folder, &users, "reader", "ops"), None, "/metrics", 200, "koord_scheduler_build_info"),
        (signed(folder, &users, "stranger", "ops"), None, "/metrics", 403, "forbidden: User \"stranger\""),
        (signed(folder, &users, "root", "system:masters"), None, "/configz", 200, "componentconfig"),
        (signed(folder, &strangers, "other", "system:masters"), None, "/configz", 401, "Unauthorized"),
        (signed(folder, &users, "speaker", "ops"), Some("reader"), "/metrics", 403, "forbidden: User \"speaker\""),
        (signed(folder, &proxies, "back", "ops"), Some("reader"), "/metrics", 401, "Unauthorized"),
        (signed(folder, &proxies, "front", "ops"), Some("reader"), "/metrics", 200, "koord_scheduler_build_info"),
    ] {
        let mut config = secure_config(secure);
        let [certificate, key] = certificate;
        (config.auth_info.client_certificate, config.auth_info.client_key) = (Some(certificate.clone()), Some(key));
        let mut request = http::Request::get(path);
        if let Some(user) = says {
            request = request.header("X-Remote-User", user);
        }
        let (found, body) = answer_to(config, request.body(Vec::new()).unwrap()).await;
        assert!(found == code && body.contains(part), "{certificate} {path}: {found} {body}");
        assert!(!body.contains("scheduler_pending_pods"));
    }
    assert_eq!(secure_answer(secure, Some("read"), "/metrics").await.0, 200, "a token will do as well");
    let page = answer(port, "/metrics").await.unwrap();
    assert!(page.contains("koord_scheduler_build_info") && !page.contains("scheduler_pending_pods"), "{page}");
    let (_, resources) = secure_answer(secure, Some("all"), "/metrics/resources").await;
    assert!(resources.contains("# TYPE kube_pod_resource_request gauge"), "always complete: {resources}");
    assert_eq!(program.terminate(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secure_port_that_is_taken_matters_only_to_who_has_chosen_it() {
    let server = Server::start().await;
    let (taken, port) = (std::net::TcpListener::bind("127.0.0.1:0").unwrap(), free());
    let config = crate::replicas::CONFIG;
    let mut chosen = server.program(config, port);
    chosen.arg(format!("--secure-port={}", taken.local_addr().unwrap().port()));
    let output = chosen.output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && message.contains("choose another port with --secure-port"), "{message}");

    // Whoever else has it will do as well.
    let _taken = std::net::TcpListener::bind("127.0.0.1:10259");
    let mut program = Running(server.program_on_both_ports(config, port).stderr(Stdio::null()).spawn().unwrap());
    is_ready(&mut program, port).await;
    assert_eq!(program.terminate(), Some(0));
}
