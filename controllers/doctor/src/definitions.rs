//! Whether the cluster serves our kinds, with our fields.

use koord_program::{findings::Report, names::few};
use koord_resource::{
    declare::Profile,
    document::{Declared, custom_resource_definition, difference::differences},
};
use koord_types::KINDS;
use serde_json::Value;

use crate::cluster::Cluster;

/// Kinds that koord-manager neither reads nor writes.
const OF_OTHERS: [&str; 4] = ["Recommendation", "ClusterNetworkTopology", "ScheduleExplanation", "PodGroup"];

const APPLY: &str = "install this program's definitions: koordctl crd apply";

pub(crate) async fn look(cluster: &Cluster, report: &mut Report) {
    for declared in KINDS {
        let Some(first) = declared.first() else { continue };
        let name = format!("{}.{}", first.info.plural, first.info.group);
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
        let Some(found) = report.read(cluster.get(&path).await) else {
            // Who may not read one may read none.
            return;
        };
        let object = format!("CustomResourceDefinition {name}");
        match found {
            Some(present) => compare(&object, &present, declared, report),
            None if OF_OTHERS.contains(&first.info.kind) => {
                report.note(object, "the cluster lacks it; koord-manager does without", APPLY);
            }
            None => report.error(object, "the cluster lacks it, so that koord-manager waits for it", APPLY),
        }
    }
}

fn compare(object: &str, present: &Value, declared: &[Declared], report: &mut Report) {
    for (type_, meaning) in [("NamesAccepted", "its names are taken"), ("Established", "it is not served")] {
        let conditions = present["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
        let condition = conditions.iter().find(|condition| condition["type"] == type_);
        if condition.is_none_or(|condition| condition["status"] != "True") {
            let message = condition.and_then(|condition| condition["message"].as_str()).unwrap_or("no condition yet");
            report.error(
                object,
                format!("{meaning}: {message}"),
                format!("see its conditions and remove what is in the way: kubectl describe crd {}", plain(object)),
            );
            return;
        }
    }
    let versions = present["spec"]["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let served = |wanted: &str| versions.iter().any(|version| version["name"] == wanted && version["served"] == true);
    let mut used = declared.iter().map(|declared| declared.info.version);
    if let Some(version) = used.find(|version| !served(version)) {
        let others = versions.iter().filter(|version| version["served"] == true);
        let others: Vec<String> = others.filter_map(|version| version["name"].as_str()).map(str::to_owned).collect();
        report.error(
            object,
            format!("version {version} is not served, only {}; koord-manager uses {version}", few(&others)),
            APPLY,
        );
        return;
    }
    let differ = |profile| {
        let mut wanted = custom_resource_definition(declared, profile);
        // Who converts is the manager's business.
        if let Some(spec) = wanted["spec"].as_object_mut() {
            spec.remove("conversion");
        }
        differences(present, &wanted)
    };
    let compatible = differ(Profile::Compatible);
    if compatible.is_empty() || differ(Profile::Hardened).is_empty() {
        return;
    }
    let first: Vec<String> = compatible.iter().map(|difference| difference.in_words("the cluster")).collect();
    report.warning(
        object,
        format!("its structure is neither of this program's profiles: {}", few(&first)),
        format!("see all differences (koordctl crd diff); {APPLY}"),
    );
}

fn plain(object: &str) -> &str {
    object.split_once(' ').map_or(object, |(_, name)| name)
}
