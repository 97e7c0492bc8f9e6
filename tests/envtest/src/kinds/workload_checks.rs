//! What may stand in the spec of a workload.

use koord_schema::field::{Errors, FieldError, Mistake, Path};
use serde_json::{Value, json};

use super::{
    disruption_budget::{check_int_or_percent, check_not_above_all},
    job_policies,
    pod_checks::{self, Owner},
    schedule, selectors,
    workload::Workload,
};

/// Completions and parallelism of an indexed job.
const INDEXES_MAX: i64 = 100_000;

/// Checks the spec of a workload that is no CronJob.
pub(super) fn spec(kind: Workload, spec: &Value, at: &Path<'_>, errors: &mut Errors) {
    match kind {
        Workload::Deployment => {
            not_negative(spec, &["replicas"], at, errors);
            template_with_selector(kind, spec, at, errors);
            deployment_strategy(&spec["strategy"], &at.child("strategy"), errors);
            not_negative(spec, &["minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"], at, errors);
            let ready = spec["minReadySeconds"].as_i64().unwrap_or_default();
            if let Some(deadline) = spec["progressDeadlineSeconds"].as_i64().filter(|deadline| *deadline <= ready) {
                errors.invalid(&at.child("progressDeadlineSeconds"), deadline, "must be greater than minReadySeconds");
            }
        }
        Workload::ReplicaSet => {
            not_negative(spec, &["replicas", "minReadySeconds"], at, errors);
            template_with_selector(kind, spec, at, errors);
        }
        Workload::StatefulSet => {
            stateful_policies(spec, at, errors);
            not_negative(spec, &["replicas", "minReadySeconds"], at, errors);
            not_negative(&spec["ordinals"], &["start"], &at.child("ordinals"), errors);
            template_with_selector(kind, spec, at, errors);
            claims(&spec["volumeClaimTemplates"], &at.child("volumeClaimTemplates"), errors);
            let service = spec["serviceName"].as_str().unwrap_or_default();
            if !service.is_empty() {
                for message in koord_schema::names::dns1123_label(service) {
                    errors.invalid(&at.child("serviceName"), service, message);
                }
            }
        }
        Workload::DaemonSet => {
            template_with_selector(kind, spec, at, errors);
            not_negative(spec, &["minReadySeconds"], at, errors);
            daemon_strategy(&spec["updateStrategy"], &at.child("updateStrategy"), errors);
            not_negative(spec, &["revisionHistoryLimit"], at, errors);
        }
        Workload::ReplicationController => {
            not_negative(spec, &["minReadySeconds", "replicas"], at, errors);
            controller_template(spec, at, errors);
        }
        Workload::Job | Workload::CronJob => {
            job(spec, at, errors);
            if kind == Workload::Job {
                job_selector(spec, at, errors);
            }
            owned_template(kind, &spec["template"], &at.child("template"), errors);
        }
    }
}

/// The longest name of a CronJob: its jobs' names have eleven characters more.
const CRON_JOB_NAME_MAX: usize = 52;

/// What the names of pods and hosts ask of the name of their owner.
pub(super) fn name(kind: Workload, name: &str, errors: &mut Errors) {
    let at = Path::root("metadata");
    if kind == Workload::CronJob && name.len() > CRON_JOB_NAME_MAX {
        errors.invalid(&at.child("name"), name, format!("must be no more than {CRON_JOB_NAME_MAX} characters"));
    }
    if kind == Workload::StatefulSet && name.contains('.') {
        errors.invalid(&at.child("name"), name, "must not contain dots");
    }
}

/// Checks the spec of a CronJob.
pub(super) fn cron_job(spec: &Value, at: &Path<'_>, errors: &mut Errors) {
    let schedule = spec["schedule"].as_str().unwrap_or_default();
    let at_schedule = at.child("schedule");
    if schedule.is_empty() {
        errors.required(&at_schedule, "");
    } else if schedule.contains("TZ") {
        let message = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        errors.invalid(&at_schedule, schedule, message);
    } else if let Some(mistake) = schedule::mistake(schedule) {
        errors.invalid(&at_schedule, schedule, mistake);
    }
    if let Some(zone) = spec["timeZone"].as_str() {
        time_zone(zone, &at.child("timeZone"), errors);
    }
    not_negative(spec, &["startingDeadlineSeconds"], at, errors);
    one_of(spec, "concurrencyPolicy", &["Allow", "Forbid", "Replace"], at, errors);
    not_negative(spec, &["successfulJobsHistoryLimit", "failedJobsHistoryLimit"], at, errors);
    let job_at = at.child("jobTemplate");
    let job_spec_at = job_at.child("spec");
    let job_spec = &spec["jobTemplate"]["spec"];
    self::spec(Workload::CronJob, job_spec, &job_spec_at, errors);
    if job_spec["selector"].is_object() {
        errors.invalid(&job_spec_at.child("selector"), &job_spec["selector"], "`selector` will be auto-generated");
    }
    if job_spec["manualSelector"] == true {
        errors.not_supported(&job_spec_at.child("manualSelector"), true, &["nil", "false"]);
    }
}

/// Whether the system knows the zone; where it knows none, whether it could.
fn is_zone(zone: &str) -> bool {
    let known = jiff::tz::db();
    match zone {
        "UTC" | "Local" => true,
        _ if zone.eq_ignore_ascii_case("utc") || zone.eq_ignore_ascii_case("local") => false,
        _ if known.is_definitively_empty() => zone.split('/').all(|part| {
            let is_common = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+');
            !part.is_empty() && part.chars().all(is_common)
        }),
        _ => known.get(zone).is_ok_and(|found| found.iana_name() == Some(zone)),
    }
}

/// Checks the zone that a schedule's times are of.
fn time_zone(zone: &str, at: &Path<'_>, errors: &mut Errors) {
    if zone.is_empty() {
        return errors.invalid(at, zone, "timeZone must be nil or non-empty string");
    }
    if zone.eq_ignore_ascii_case("local") {
        let message = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        errors.invalid(at, zone, message);
    }
    if !is_zone(zone) {
        errors.invalid(at, zone, format!("unknown time zone {zone}"));
    }
}

pub(super) fn not_negative(fields: &Value, names: &[&str], at: &Path<'_>, errors: &mut Errors) {
    for name in names {
        if let Some(number) = fields[*name].as_i64().filter(|number| *number < 0) {
            errors.invalid(&at.child(name), number, "must be greater than or equal to 0");
        }
    }
}

fn one_of(fields: &Value, name: &str, allowed: &[&str], at: &Path<'_>, errors: &mut Errors) {
    if let Some(value) = fields[name].as_str().filter(|value| !allowed.contains(value)) {
        errors.not_supported(&at.child(name), value, allowed);
    }
}

fn template_with_selector(kind: Workload, spec: &Value, at: &Path<'_>, errors: &mut Errors) {
    let selector = &spec["selector"];
    let selector_at = at.child("selector");
    // The real server speaks of a deployment for replica sets too.
    let (words, unreadable) = match kind {
        Workload::DaemonSet => ("empty selector is invalid for daemonset", None),
        Workload::StatefulSet => ("empty selector is invalid for statefulset", Some("")),
        _ => ("empty selector is invalid for deployment", Some("invalid label selector")),
    };
    let is_readable = selectors::check(selector, &selector_at, errors);
    let is_given = selector.is_object();
    if !is_given && kind != Workload::DaemonSet {
        errors.required(&selector_at, "");
    }
    let empty = |errors: &mut Errors| {
        if is_given && selectors::is_empty(selector) {
            errors.invalid(&selector_at, selector, words);
        }
    };
    if kind != Workload::DaemonSet {
        empty(errors);
    }
    let template_at = at.child("template");
    let labels = &spec["template"]["metadata"]["labels"];
    if is_readable && !selectors::matches(selector, labels) {
        let metadata_at = template_at.child("metadata");
        errors.invalid(&metadata_at.child("labels"), labels, "`selector` does not match template `labels`");
    }
    if kind == Workload::DaemonSet {
        empty(errors);
    }
    match unreadable.filter(|_| !is_readable) {
        Some(message) => errors.invalid(&selector_at, selector, message),
        None => owned_template(kind, &spec["template"], &template_at, errors),
    }
}

/// Checks what a replication controller selects by, and the pods that it makes.
fn controller_template(spec: &Value, at: &Path<'_>, errors: &mut Errors) {
    let (selector, template_at) = (&spec["selector"], at.child("template"));
    let terms: Vec<(&String, &Value)> = selector.as_object().into_iter().flatten().collect();
    if terms.is_empty() {
        errors.required(&at.child("selector"), "");
    }
    if !spec["template"].is_object() {
        return errors.required(&template_at, "");
    }
    let labels = &spec["template"]["metadata"]["labels"];
    if !terms.is_empty() && !terms.iter().all(|(key, value)| labels.get(key.as_str()) == Some(*value)) {
        let metadata_at = template_at.child("metadata");
        errors.invalid(&metadata_at.child("labels"), labels, "`selector` does not match template `labels`");
    }
    owned_template(Workload::ReplicationController, &spec["template"], &template_at, errors);
}

/// Checks a template of pods.
pub(super) fn template(template: &Value, at: &Path<'_>, errors: &mut Errors) {
    template_metadata(template, at, errors);
    pod_checks::spec(&template["spec"], Owner::Template, &at.child("spec"), errors);
}

fn template_metadata(template: &Value, at: &Path<'_>, errors: &mut Errors) {
    koord_schema::object_meta::validate_labels(&template["metadata"]["labels"], &at.child("labels"), errors);
    koord_schema::object_meta::validate_annotations(
        &template["metadata"]["annotations"],
        &at.child("annotations"),
        errors,
    );
}

/// Checks a template of pods that a workload runs: not every pod may be one of its.
fn owned_template(kind: Workload, template: &Value, at: &Path<'_>, errors: &mut Errors) {
    if kind == Workload::StatefulSet {
        // The real server looks at these twice.
        template_metadata(template, at, errors);
    }
    self::template(template, at, errors);
    let spec = &template["spec"];
    let spec_at = at.child("spec");
    if spec["ephemeralContainers"].as_array().is_some_and(|containers| !containers.is_empty()) {
        let why = "ephemeral containers not allowed in pod template";
        errors.forbidden(&spec_at.child("ephemeralContainers"), why);
    }
    let policy = spec["restartPolicy"].as_str().unwrap_or_default();
    let policy_at = spec_at.child("restartPolicy");
    let owner = match kind {
        Workload::Job | Workload::CronJob => {
            if matches!(policy, "" | "Always") {
                errors.required(&policy_at, r#"valid values: "OnFailure", "Never""#);
            } else if !matches!(policy, "OnFailure" | "Never") {
                errors.not_supported(&policy_at, policy, &["OnFailure", "Never"]);
            }
            return;
        }
        Workload::StatefulSet => "StatefulSet",
        Workload::DaemonSet => "DaemonSet",
        _ => "ReplicaSet",
    };
    if policy != "Always" && !policy.is_empty() {
        errors.not_supported(&policy_at, policy, &["Always"]);
    }
    if !spec["activeDeadlineSeconds"].is_null() {
        let message = format!("activeDeadlineSeconds in {owner} is not Supported");
        errors.forbidden(&spec_at.child("activeDeadlineSeconds"), message);
    }
}

/// The way of changing pods, as the real server shows the struct.
fn shown_strategy(strategy: &Value, rolling: &[(&str, &str)]) -> String {
    let parameters = &strategy["rollingUpdate"];
    let parameters = if parameters.is_object() {
        let fields: Vec<String> = rolling.iter().map(|(name, go)| format!("\"{go}\":{}", parameters[*name])).collect();
        format!("{{{}}}", fields.join(","))
    } else {
        "null".to_owned()
    };
    format!("{{\"Type\":{},\"RollingUpdate\":{parameters}}}", strategy["type"])
}

const SURGES: &[(&str, &str)] = &[("maxUnavailable", "MaxUnavailable"), ("maxSurge", "MaxSurge")];
const PARTITIONS: &[(&str, &str)] = &[("partition", "Partition"), ("maxUnavailable", "MaxUnavailable")];

fn refuse(mistake: Mistake, at: &Path<'_>, value: String, detail: &str, errors: &mut Errors) {
    errors.add(FieldError { mistake, field: at.to_string(), value, detail: detail.to_owned() });
}

/// A share of pods as a number: percents count as they are written.
fn share(value: &Value) -> i64 {
    let percent = value.as_str().and_then(|text| text.strip_suffix('%')?.parse().ok());
    value.as_i64().or(percent).unwrap_or_default()
}

fn deployment_strategy(strategy: &Value, at: &Path<'_>, errors: &mut Errors) {
    let rolling = &strategy["rollingUpdate"];
    let rolling_at = at.child("rollingUpdate");
    match strategy["type"].as_str().unwrap_or_default() {
        "Recreate" => {
            if !rolling.is_null() {
                errors.forbidden(&rolling_at, "may not be specified when strategy `type` is 'Recreate'");
            }
        }
        "RollingUpdate" => {
            let unavailable_at = rolling_at.child("maxUnavailable");
            check_int_or_percent(&rolling["maxUnavailable"], &unavailable_at, errors);
            check_int_or_percent(&rolling["maxSurge"], &rolling_at.child("maxSurge"), errors);
            if share(&rolling["maxUnavailable"]) == 0 && share(&rolling["maxSurge"]) == 0 {
                errors.invalid(&unavailable_at, &rolling["maxUnavailable"], "may not be 0 when `maxSurge` is 0");
            }
            check_not_above_all(&rolling["maxUnavailable"], &unavailable_at, errors);
        }
        _ => {
            let detail = r#"supported values: "Recreate", "RollingUpdate""#;
            refuse(Mistake::NotSupported, at, shown_strategy(strategy, SURGES), detail, errors);
        }
    }
}

fn daemon_strategy(strategy: &Value, at: &Path<'_>, errors: &mut Errors) {
    let rolling = &strategy["rollingUpdate"];
    let rolling_at = at.child("rollingUpdate");
    match strategy["type"].as_str().unwrap_or_default() {
        "OnDelete" => {}
        "RollingUpdate" => {
            let (unavailable, surge) = (&rolling["maxUnavailable"], &rolling["maxSurge"]);
            let (unavailable_at, surge_at) = (rolling_at.child("maxUnavailable"), rolling_at.child("maxSurge"));
            for (value, at) in [(unavailable, &unavailable_at), (surge, &surge_at)] {
                check_int_or_percent(value, at, errors);
                check_not_above_all(value, at, errors);
            }
            let is_set = |value: &Value| share(value) != 0;
            if is_set(unavailable) && share(surge) > 0 {
                errors.invalid(&surge_at, surge, "may not be set when maxUnavailable is non-zero");
            } else if !is_set(unavailable) && !is_set(surge) {
                errors.required(&unavailable_at, "cannot be 0 when maxSurge is 0");
            }
        }
        _ => {
            let detail = r#"supported values: "RollingUpdate", "OnDelete""#;
            refuse(Mistake::NotSupported, at, shown_strategy(strategy, SURGES), detail, errors);
        }
    }
}

fn stateful_policies(spec: &Value, at: &Path<'_>, errors: &mut Errors) {
    if let Some(policy) =
        spec["podManagementPolicy"].as_str().filter(|policy| !matches!(*policy, "OrderedReady" | "Parallel"))
    {
        errors.invalid(&at.child("podManagementPolicy"), policy, "must be 'OrderedReady' or 'Parallel'");
    }
    let strategy = &spec["updateStrategy"];
    let strategy_at = at.child("updateStrategy");
    let rolling = &strategy["rollingUpdate"];
    let rolling_at = strategy_at.child("rollingUpdate");
    match strategy["type"].as_str().unwrap_or_default() {
        "OnDelete" if !rolling.is_null() => {
            let value =
                format!("{{\"Partition\":{},\"MaxUnavailable\":{}}}", rolling["partition"], rolling["maxUnavailable"]);
            let detail = "only allowed for updateStrategy 'RollingUpdate'";
            refuse(Mistake::Invalid, &rolling_at, value, detail, errors);
        }
        "OnDelete" => {}
        "RollingUpdate" => not_negative(rolling, &["partition"], &rolling_at, errors),
        _ => {
            let detail = "must be 'RollingUpdate' or 'OnDelete'";
            refuse(Mistake::Invalid, &strategy_at, shown_strategy(strategy, PARTITIONS), detail, errors);
        }
    }
    let claims_at = at.child("persistentVolumeClaimRetentionPolicy");
    for field in ["whenDeleted", "whenScaled"] {
        one_of(&spec["persistentVolumeClaimRetentionPolicy"], field, &["Retain", "Delete"], &claims_at, errors);
    }
}

/// A claim that every pod of a StatefulSet makes says what it may be used for.
fn claims(claims: &Value, at: &Path<'_>, errors: &mut Errors) {
    for (index, claim) in claims.as_array().into_iter().flatten().enumerate() {
        if claim["spec"]["accessModes"].as_array().is_none_or(Vec::is_empty) {
            let at = at.index(index);
            let at = at.child("spec");
            errors.required(&at.child("accessModes"), "at least 1 access mode is required");
        }
    }
}

/// A selector that is not set by hand selects the labels that the server gives to the job's pods.
pub(super) fn generated_selector(job: &Value, errors: &mut Errors) {
    let selector = &job["spec"]["selector"];
    if job["spec"]["manualSelector"] == true || !selector.is_object() {
        return;
    }
    let (uid, name) = (&job["metadata"]["uid"], &job["metadata"]["name"]);
    let generated = json!({
        "controller-uid": uid, "batch.kubernetes.io/controller-uid": uid,
        "job-name": name, "batch.kubernetes.io/job-name": name,
    });
    // What is wrong with a selector that cannot be read is reported with the rest of the spec.
    if selectors::check(selector, &Path::root("spec"), &mut Errors::new()) && !selectors::matches(selector, &generated)
    {
        errors.invalid(&Path::root("spec").child("selector"), selector, "`selector` not auto-generated");
    }
}

fn job_selector(spec: &Value, at: &Path<'_>, errors: &mut Errors) {
    let selector = &spec["selector"];
    let is_readable = selectors::check(selector, &at.child("selector"), errors);
    if !selector.is_object() {
        errors.required(&at.child("selector"), "");
    }
    let labels = &spec["template"]["metadata"]["labels"];
    if is_readable && !selectors::matches(selector, labels) {
        let template_at = at.child("template");
        let metadata_at = template_at.child("metadata");
        errors.invalid(&metadata_at.child("labels"), labels, "`selector` does not match template `labels`");
    }
}

fn job(spec: &Value, at: &Path<'_>, errors: &mut Errors) {
    not_negative(spec, &["parallelism", "completions", "activeDeadlineSeconds", "backoffLimit"], at, errors);
    not_negative(spec, &["ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes"], at, errors);
    one_of(spec, "completionMode", &["NonIndexed", "Indexed"], at, errors);
    if spec["completionMode"] == "Indexed" {
        if spec["completions"].is_null() {
            errors.required(&at.child("completions"), "when completion mode is Indexed");
        }
        if let Some(number) = spec["parallelism"].as_i64().filter(|number| *number > INDEXES_MAX) {
            let message = format!("must be less than or equal to {INDEXES_MAX} when completion mode is Indexed");
            errors.invalid(&at.child("parallelism"), number, message);
        }
    } else {
        if spec["maxFailedIndexes"].is_i64() && spec["backoffLimitPerIndex"].is_null() {
            errors.required(&at.child("backoffLimitPerIndex"), "when maxFailedIndexes is specified");
        }
        for field in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            if let Some(number) = spec[field].as_i64() {
                errors.invalid(&at.child(field), number, "requires indexed completion mode");
            }
        }
    }
    job_policies::check(spec, at, errors);
    one_of(spec, "podReplacementPolicy", &["Failed", "TerminatingOrFailed"], at, errors);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_known_or_look_like_it() {
        let refused = |zone: &str| {
            let mut errors = Errors::new();
            time_zone(zone, &Path::root("timeZone"), &mut errors);
            !errors.is_empty()
        };
        assert!(!refused("UTC") && !refused("Europe/Berlin") && !refused("Etc/GMT+1"));
        assert!(refused("") && refused("utc") && refused("local") && refused("../x") && refused("Europe/"));
        // Only a list of zones contains these.
        assert_eq!(refused("Foo/Bar"), !jiff::tz::db().is_definitively_empty());
    }
}
