//! The quotas of all files as one tree, as the webhook would see them come.

use std::collections::BTreeSet;

use koord_manager_assembly::reviewer::{QUOTAS, Reviewer};
use koord_program::files;
use koord_resource::admission::{Denial, Operation};
use koord_types::quota::{PARENT, ROOT_QUOTA};
use serde_json::Value;

/// What refuses each quota, in the order in which they were given; parents are taken to be created first.
///
/// A parent that no file holds may be in the cluster: then only what the quota says of itself and of those below it is
/// checked.
pub(crate) fn refusals(reviewer: &Reviewer, quotas: &[&Value]) -> Vec<Option<Denial>> {
    let mut refusals: Vec<Option<Denial>> = quotas.iter().map(|_| None).collect();
    let named: BTreeSet<&str> = quotas.iter().map(|quota| name(quota)).collect();
    let mut waiting: Vec<usize> = (0..quotas.len()).collect();
    let mut created: BTreeSet<&str> = BTreeSet::new();
    while !waiting.is_empty() {
        let is_due = |index: &usize| {
            let parent = parent(quotas[*index]);
            !named.contains(parent) || created.contains(parent) || parent == name(quotas[*index])
        };
        let (mut due, later): (Vec<usize>, Vec<usize>) = waiting.iter().partition(|index| is_due(index));
        if due.is_empty() {
            // They stand below each other in a circle; the webhook refuses the first of them.
            due.clone_from(&later);
            waiting.clear();
        } else {
            waiting = later;
        }
        for index in due {
            let mut quota = quotas[index].clone();
            if !named.contains(parent(&quota))
                && let Some(labels) = quota.pointer_mut("/metadata/labels").and_then(Value::as_object_mut)
            {
                labels.insert(PARENT.to_owned(), ROOT_QUOTA.into());
            }
            files::as_stored(&mut quota, true);
            match reviewer.admit(QUOTAS, Operation::Create, &quota, None) {
                Ok(admitted) => {
                    // What the handlers have admitted, their cache can read.
                    let _ = reviewer.know("ElasticQuota", &admitted.to_string());
                }
                Err(denial) => refusals[index] = Some(denial),
            }
            created.insert(name(quotas[index]));
        }
    }
    refusals
}

fn name(quota: &Value) -> &str {
    quota["metadata"]["name"].as_str().unwrap_or_default()
}

fn parent(quota: &Value) -> &str {
    let parent = quota["metadata"]["labels"][PARENT].as_str().unwrap_or_default();
    if parent.is_empty() { ROOT_QUOTA } else { parent }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn quota(name: &str, parent: &str, cpu: &str) -> Value {
        json!({
            "apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota",
            "metadata": {"name": name, "namespace": "default", "labels": {
                PARENT: parent, "quota.scheduling.koordinator.sh/is-parent": "true",
            }},
            "spec": {"min": {"cpu": cpu}, "max": {"cpu": "100"}},
        })
    }

    fn messages(quotas: &[Value]) -> Vec<String> {
        let quotas: Vec<&Value> = quotas.iter().collect();
        let refusals = refusals(&Reviewer::default(), &quotas);
        refusals.into_iter().map(|refusal| refusal.map_or_else(String::new, |denial| denial.message)).collect()
    }

    #[test]
    fn parents_count_wherever_they_stand() {
        let quotas =
            [quota("low", "top", "7"), quota("lower", "low", "3"), quota("top", "", "10"), quota("more", "top", "4")];
        let beyond = "checkMinQuotaSum all brothers' MinQuota > parent MinQuota, parent: top";
        assert_eq!(messages(&quotas), ["", "", "", beyond]);
    }

    #[test]
    fn what_is_no_quota_is_refused_and_harms_nobody() {
        let broken = [json!({"metadata": 5}), json!({"metadata": {"name": "a", "labels": "x"}}), json!({"spec": []})];
        let all: Vec<Value> = broken.into_iter().chain([quota("b", "", "1")]).collect();
        let found = messages(&all);
        assert!(found[..3].iter().all(|message| !message.is_empty()) && found[3].is_empty(), "{found:?}");
    }

    #[test]
    fn a_parent_that_is_elsewhere_is_believed_in() {
        assert_eq!(messages(&[quota("low", "in-the-cluster", "7")]), [""]);
    }

    #[test]
    fn names_are_taken_once_and_circles_are_refused() {
        assert_eq!(messages(&[quota("a", "", "1"), quota("a", "", "1")]), ["", "AddQuota quota already exist:a"]);
        let circle = messages(&[quota("a", "b", "1"), quota("b", "a", "1")]);
        assert!(circle[0] == "fill quota a failed, parent not exist", "{circle:?}");
    }
}
