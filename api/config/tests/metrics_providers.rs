//! `metricsProviders` of a descheduler.
#![allow(clippy::unwrap_used)]

use koord_config::{Kind, descheduler::DeschedulerConfiguration};
use serde_json::{Value, json};

fn document(providers: &Value) -> Value {
    let args = json!({
        "thresholds": {"MetricResource": 20}, "targetThresholds": {"MetricResource": 50},
        "metricsUtilization": {"source": "Prometheus", "prometheus": {"query": "load"}},
    });
    json!({
        "apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerConfiguration", "metricsProviders": providers,
        "profiles": [{
            "name": "p", "plugins": {"balance": {"enabled": [{"name": "LowNodeUtilization"}]}},
            "pluginConfig": [{"name": "LowNodeUtilization", "args": args}],
        }],
    })
}

fn problems(providers: &Value) -> Vec<String> {
    let problems = Kind::Descheduler.check(&document(providers)).into_iter();
    problems
        .map(|problem| match &problem.suggestion {
            Some(suggestion) => format!("{problem} ({suggestion})"),
            None => problem.to_string(),
        })
        .collect()
}

#[test]
fn prometheus_has_a_url_and_a_token_of_a_secret() {
    let secret = json!({"secretReference": {"namespace": "monitoring", "name": "token"}});
    let prometheus = |prometheus: Value| json!([{"source": "Prometheus", "prometheus": prometheus}]);
    for right in [
        prometheus(json!({"url": "https://prometheus:9091", "authToken": secret})),
        prometheus(json!({"url": "http://prometheus:9090/prefix"})),
        json!([{"source": "KubernetesMetrics"}, {"source": "Prometheus", "prometheus": {"url": "https://p"}}]),
    ] {
        assert_eq!(problems(&right), [""; 0], "{right}");
    }
    let configured =
        DeschedulerConfiguration::of(&document(&prometheus(json!({"url": "https://p", "authToken": secret}))));
    let configured = configured.unwrap();
    let token = configured.prometheus().unwrap().auth_token.clone().unwrap().secret_reference;
    assert_eq!((token.namespace.as_str(), token.name.as_str()), ("monitoring", "token"));
}

#[test]
fn what_is_wrong_with_a_provider_is_reported_with_its_remedy() {
    let at = "profiles[0].pluginConfig[0].args.metricsUtilization.source";
    let unknown = format!(
        "{at}: LowNodeUtilization: it is not known where Prometheus is (add {{source: Prometheus, prometheus: {{url: …}}}} to metricsProviders)"
    );
    for (providers, expected) in [
        (json!([]), vec![unknown.as_str()]),
        (json!([{"source": "Prometheus"}]), vec!["metricsProviders[0].prometheus.url: must be set", &unknown]),
        (
            json!([{"source": "Prometheus", "prometheus": {"url": "prometheus:9090"}}]),
            vec!["metricsProviders[0].prometheus.url: \"prometheus:9090\" must begin with https:// or http://"],
        ),
        (
            json!([{"source": "Prometheus", "prometheus": {"url": "http://p", "authToken": {"secretReference": {"name": "t"}}}}]),
            vec![
                "metricsProviders[0].prometheus.authToken: a token is not sent without TLS (let the url begin with https://, or leave the token out)",
                "metricsProviders[0].prometheus.authToken.secretReference.namespace: must be set",
            ],
        ),
        (
            json!([{"source": "KubernetesMetrics", "prometheus": {"url": "https://p"}}]),
            vec![
                "metricsProviders[0].prometheus: the metrics server is asked through the API server (set source to Prometheus, or leave it out)",
            ],
        ),
        (
            json!([{"source": "Prometheus", "prometheus": {"url": "https://p"}}, {"source": "Prometheus", "prometheus": {"url": "https://q"}}]),
            vec!["metricsProviders[1].source: Prometheus stands twice"],
        ),
    ] {
        let mut found = problems(&providers);
        found.sort();
        let mut expected = expected;
        expected.sort_unstable();
        assert_eq!(found, expected, "{providers}");
    }
}
