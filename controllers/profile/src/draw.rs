//! Chance: a profile of probability p applies to p of 100 objects.

use std::hash::{DefaultHasher, Hash, Hasher};

use koord_resource::int_or_string::PercentError;

use crate::Profile;

/// What an object's draw follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity<'a> {
    /// Its namespace and its name.
    Named(&'a str, &'a str),
    /// The uid of the request that makes it: objects that the API server will name are alike.
    Request(&'a str),
}

/// A number from 0 to 99. It follows from the profile's name and the object: a retry draws the same.
pub fn draw(profile: &Profile, identity: Identity<'_>) -> i64 {
    let identity = match identity {
        Identity::Named(namespace, name) => (namespace, name),
        Identity::Request(uid) => (uid, ""),
    };
    let mut hasher = DefaultHasher::new();
    (identity, profile.name.as_str()).hash(&mut hasher);
    i64::try_from(hasher.finish() % 100).unwrap_or_default()
}

/// Whether the profile's probability lets it apply to an object. A probability that is no percentage is an error.
pub fn drawn(profile: &Profile, identity: Identity<'_>) -> Result<bool, PercentError> {
    let Some(probability) = &profile.spec.probability else { return Ok(true) };
    Ok(draw(profile, identity) < probability.int_or_percent()?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use koord_core::cache::Cache;
    use koord_resource::IntOrString;
    use serde_json::json;

    use super::*;

    fn profile(probability: &IntOrString) -> Arc<Profile> {
        let spec = json!({ "probability": probability });
        let object = json!({"metadata": {"name": "p", "uid": "u", "resourceVersion": "1"}, "spec": spec});
        let mut profiles = Cache::<Profile>::default();
        profiles.upsert(&object.to_string()).unwrap();
        Arc::clone(&profiles.get("p").unwrap().value)
    }

    #[test]
    fn the_share_of_pods_is_the_probability() {
        let share = |probability: IntOrString, named: bool| {
            let profile = profile(&probability);
            let drawn = |number: &usize| {
                let text = format!("pod-{number}");
                let identity = if named { Identity::Named("default", &text) } else { Identity::Request(&text) };
                super::drawn(&profile, identity).unwrap()
            };
            (0..10_000).filter(drawn).count()
        };
        for named in [true, false] {
            assert_eq!(share(0.into(), named), 0);
            assert_eq!(share((-1).into(), named), 0);
            assert_eq!(share(100.into(), named), 10_000);
            assert_eq!(share("120%".into(), named), 10_000);
            let half = share("50%".into(), named);
            assert!((4_800..5_200).contains(&half), "{half} of 10000");
            let one = share(1.into(), named);
            assert!((60..150).contains(&one), "{one} of 10000");
            let nearly_all = share(99.into(), named);
            assert!((9_840..9_960).contains(&nearly_all), "{nearly_all} of 10000");
        }
    }
}
