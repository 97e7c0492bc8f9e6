//! Tokens by which kubelets ask for their first certificate: Secrets of type `bootstrap.kubernetes.io/token`.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use jiff::Timestamp;
use serde_json::Value;

use crate::request::User;
use crate::server::ApiServer;

const TYPE: &str = "bootstrap.kubernetes.io/token";
const NAMESPACE: &str = "kube-system";
/// The group that all of them are in; a Secret names further ones.
const GROUP: &str = "system:bootstrappers";

/// The user of a token `ID.SECRET`; none when no Secret knows it, or not any more.
pub(super) fn user(core: &ApiServer, token: &str, now: Timestamp) -> Option<User> {
    let (id, secret) = token.split_once('.')?;
    let is_part = |part: &str, length: usize| {
        part.len() == length && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    if !is_part(id, 6) || !is_part(secret, 16) {
        return None;
    }
    let stored = core.object(core.registry.get("", "v1", "secrets")?, NAMESPACE, &format!("bootstrap-token-{id}"))?;
    let data = |key: &str| {
        let bytes = BASE64.decode(stored["data"][key].as_str()?).ok()?;
        String::from_utf8(bytes).ok()
    };
    let is_same = |known: &str| {
        // Of equal length, so that the time that it takes says nothing.
        known.len() == secret.len() && known.bytes().zip(secret.bytes()).fold(0, |all, (a, b)| all | (a ^ b)) == 0
    };
    let is_over = match data("expiration") {
        Some(time) => time.parse::<Timestamp>().map_or(true, |end| end <= now),
        None => false,
    };
    let is_valid = stored["type"] == TYPE
        && stored["metadata"]["deletionTimestamp"] == Value::Null
        && data("token-id").as_deref() == Some(id)
        && data("token-secret").is_some_and(|known| is_same(&known))
        && data("usage-bootstrap-authentication").as_deref() == Some("true")
        && !is_over;
    if !is_valid {
        return None;
    }
    let further = data("auth-extra-groups").unwrap_or_default();
    let further = further.split(',').map(str::trim).filter(|group| !group.is_empty());
    if further.clone().any(|group| !group.starts_with("system:bootstrappers:")) {
        return None;
    }
    let groups = [GROUP].into_iter().chain(further).chain(["system:authenticated"]);
    Some(User {
        name: format!("system:bootstrap:{id}"),
        groups: groups.map(str::to_owned).collect(),
        ..User::default()
    })
}

#[cfg(test)]
mod tests {
    use http::Method;
    use serde_json::json;

    use super::*;
    use crate::{environment::SeededEnvironment, kinds, request::ApiRequest, server::Outcome, store::HistoryLimits};

    #[test]
    fn a_token_is_good_until_it_ends_and_for_who_knows_all_of_it() {
        let now: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
        let mut core = ApiServer::empty(Box::new(SeededEnvironment::new(1, now)), HistoryLimits::default());
        kinds::install(&mut core);
        crate::bootstrap::run(&mut core).unwrap();
        let secret = json!({"metadata": {"name": "bootstrap-token-abcdef"}, "type": TYPE, "stringData": {
            "token-id": "abcdef", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true",
            "auth-extra-groups": "system:bootstrappers:workers", "expiration": "2026-01-02T04:00:00Z",
        }});
        let request = ApiRequest::json(Method::POST, "/api/v1/namespaces/kube-system/secrets", &secret);
        let Outcome::Done(answer) = core.handle(&request) else { panic!("no webhook is configured") };
        assert_eq!(answer.code, 201, "{}", String::from_utf8_lossy(&answer.body));
        let known = user(&core, "abcdef.0123456789abcdef", now).unwrap();
        assert_eq!(known.name, "system:bootstrap:abcdef");
        assert_eq!(known.groups, ["system:bootstrappers", "system:bootstrappers:workers", "system:authenticated"]);
        for token in ["abcdef.0123456789abcdee", "abcdeg.0123456789abcdef", "abcdef.0123", "abcdef", ""] {
            assert_eq!(user(&core, token, now), None, "{token}");
        }
        let later = "2026-01-02T04:00:00Z".parse().unwrap();
        assert_eq!(user(&core, "abcdef.0123456789abcdef", later), None);
    }
}
