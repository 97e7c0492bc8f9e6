//! The extenders of a configuration: what decisions depend on, and the way to each.

use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow};
use koord_config::scheduler::{Extender as Configured, ExtenderTls};
use koord_scheduler_framework::extender::Extender;
use koord_scheduler_runtime::Webhook;
use kube::{Client, Config, config::Kubeconfig};
use serde_json::json;

use crate::Configuration;

/// What decisions depend on, in the order in which extenders are asked: those that may be passed over come last.
pub(crate) fn extenders(configuration: &Configuration) -> Arc<[Extender]> {
    in_order(configuration).map(extender).collect()
}

/// The ways to them, in the same order.
pub fn webhooks(configuration: &Configuration) -> Result<Vec<Webhook>> {
    let of = |configured| webhook(configured).with_context(|| format!("extender {}", configured.url_prefix));
    in_order(configuration).map(of).collect()
}

/// Resources that nodes are not asked about, because extenders are.
pub(crate) fn ignored_resources(configuration: &Configuration) -> Vec<String> {
    let managed = configuration.values.extenders.iter().flat_map(|extender| &extender.managed_resources);
    managed.filter(|resource| resource.ignored_by_scheduler).map(|resource| resource.name.clone()).collect()
}

fn in_order(configuration: &Configuration) -> impl Iterator<Item = &Configured> {
    let that_are =
        |ignorable| configuration.values.extenders.iter().filter(move |extender| extender.ignorable == ignorable);
    that_are(false).chain(that_are(true))
}

fn extender(configured: &Configured) -> Extender {
    Extender {
        url: configured.url_prefix.clone(),
        filter: configured.filter_verb.clone(),
        prioritize: configured.prioritize_verb.clone(),
        preempt: configured.preempt_verb.clone(),
        bind: configured.bind_verb.clone(),
        weight: configured.weight,
        managed: configured.managed_resources.iter().map(|resource| resource.name.clone()).collect(),
        is_ignorable: configured.ignorable,
    }
}

fn webhook(configured: &Configured) -> Result<Webhook> {
    Ok(Webhook {
        extender: extender(configured),
        client: client(configured)?,
        timeout: configured.http_timeout.to_std().unwrap_or_default(),
        answer_bytes_max: Webhook::ANSWER_BYTES_MAX,
        knows_objects: configured.node_cache_capable,
    })
}

/// The client of an extender. Certificates and keys have the forms of a kubeconfig.
fn client(configured: &Configured) -> Result<Client> {
    let ExtenderTls { insecure, server_name, cert_file, key_file, ca_file, cert_data, key_data, ca_data } =
        configured.tls_config.clone().unwrap_or_default();
    let given = |text: String| Some(text).filter(|text| !text.is_empty());
    let trusts_anybody = insecure || configured.enable_https && ca_file.is_empty() && ca_data.is_empty();
    let cluster = json!({
        "server": configured.url_prefix, "insecure-skip-tls-verify": trusts_anybody,
        "certificate-authority": given(ca_file), "certificate-authority-data": given(ca_data),
        "tls-server-name": given(server_name),
    });
    let user = json!({
        "client-certificate": given(cert_file), "client-certificate-data": given(cert_data),
        "client-key": given(key_file), "client-key-data": given(key_data),
    });
    let kubeconfig: Kubeconfig = serde_json::from_value(json!({
        "clusters": [{"name": "extender", "cluster": cluster}], "users": [{"name": "extender", "user": user}],
        "contexts": [{"name": "extender", "context": {"cluster": "extender", "user": "extender"}}],
        "current-context": "extender",
    }))?;
    let mut config = Config::try_from(kubeconfig).map_err(|error| anyhow!("tlsConfig cannot be used: {error}"))?;
    // An extender is asked once: its answer decides about one attempt.
    config.default_retry = false;
    config.proxy_url = None;
    Client::try_from(config).map_err(|error| anyhow!("tlsConfig cannot be used: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configured(extender: serde_json::Value) -> Configured {
        serde_json::from_value(extender).unwrap()
    }

    #[tokio::test]
    async fn certificates_that_cannot_be_used_are_reported() {
        let with_tls = |tls: serde_json::Value| {
            configured(json!({"urlPrefix": "https://127.0.0.1:1/x", "enableHTTPS": true, "tlsConfig": tls}))
        };
        for tls in [json!({}), json!({"insecure": true, "serverName": "extender"})] {
            client(&with_tls(tls)).unwrap();
        }
        for tls in [json!({"caFile": "/nonexistent/ca"}), json!({"certData": "eA==", "keyData": "eA=="})] {
            let error = client(&with_tls(tls)).map(drop).unwrap_err().to_string();
            assert!(error.starts_with("tlsConfig cannot be used: "), "{error}");
        }
    }
}
