//! The operator, on clusters inside the test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    process::{Child, Command, Stdio},
    time::Duration,
};

use cronjob::{CRON_JOB, NAME, NAMESPACE, api::CronJob, manifests, operator, runs::SCHEDULED_AT};
use koord::{
    declare::Profile,
    document::custom_resource_definition,
    envtest::yaml,
    jiff::Timestamp,
    k8s_openapi::api::{batch::v1::Job, events::v1::Event},
    kube::{
        self, Api,
        api::{ListParams, Patch, PatchParams},
    },
    serde_json::{Value, json},
    testing::{Cluster, Result, run},
    tokio,
    webhook::{Defaults, Environment},
};

async fn start() -> Result<Cluster> {
    Ok(Cluster::start(NAME, &manifests(), operator::add).await?.with_patience(Duration::from_mins(10)))
}

fn pods() -> Value {
    json!({"spec": {"restartPolicy": "OnFailure", "containers": [{"name": "c", "image": "i"}]}})
}

/// A CronJob that runs every five minutes, with what `spec` says instead.
fn cron_job(name: &str, spec: &Value) -> Value {
    let mut all = json!({"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": pods()}}});
    for (field, value) in spec.as_object().unwrap() {
        all[field] = value.clone();
    }
    json!({"apiVersion": "batch.tutorial.kubebuilder.io/v1", "kind": "CronJob", "metadata": {"name": name}, "spec": all})
}

/// A Job of a CronJob that somebody else made.
fn job_of(owner: &Value, name: &str) -> Value {
    let owner = json!({
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "controller": true,
    });
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "ownerReferences": [owner]},
        "spec": {"template": pods()},
    })
}

/// Ends a Job that has started at this minute of the year's first hour.
async fn end(jobs: &Api<Job>, name: &str, how: &str, started: u32) -> Result<()> {
    let status = json!({
        "startTime": format!("2026-01-01T00:{started:02}:00Z"), "conditions": [{"type": how, "status": "True"}],
    });
    jobs.patch_status(name, &PatchParams::default(), &Patch::Merge(json!({"status": status}))).await?;
    Ok(())
}

async fn change(cron_jobs: &Api<CronJob>, name: &str, spec: &Value) -> Result<CronJob, kube::Error> {
    cron_jobs.patch(name, &PatchParams::default(), &Patch::Merge(json!({"spec": spec}))).await
}

async fn names(jobs: &Api<Job>) -> Result<Vec<String>> {
    let listed = jobs.list(&ListParams::default()).await?.items;
    Ok(listed.into_iter().map(|job| job.metadata.name.unwrap()).collect())
}

fn active(cron_job: &CronJob) -> Vec<&str> {
    let status = cron_job.status.iter().flat_map(|status| &status.active);
    status.map(|job| job.name.as_deref().unwrap()).collect()
}

/// Whether a condition has this status and reason.
fn has_condition(type_: &str, status: &str, reason: &str) -> impl Fn(&CronJob) -> bool {
    move |cron_job| {
        let mut conditions = cron_job.status.iter().flat_map(|status| &status.conditions);
        conditions
            .any(|condition| (&*condition.type_, &*condition.status, &*condition.reason) == (type_, status, reason))
    }
}

fn has_status(cron_job: &CronJob) -> bool {
    cron_job.status.is_some()
}

/// The name of the Job for this minute of the year's first hour.
fn of_minute(name: &str, minute: i64) -> String {
    format!("{name}-{}", 1_767_225_600 + minute * 60)
}

// === the kind and its webhooks ===

#[test]
fn the_definition_is_the_tutorials() {
    let definition = custom_resource_definition(CRON_JOB, Profile::Compatible);
    assert_eq!(definition["metadata"]["name"], "cronjobs.batch.tutorial.kubebuilder.io");
    let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    let spec = &schema["spec"]["properties"];
    let required = schema["spec"]["required"].as_array().unwrap();
    assert!(required.len() == 2 && ["jobTemplate", "schedule"].iter().all(|field| required.contains(&json!(field))));
    assert_eq!(spec["schedule"]["minLength"], 1);
    assert_eq!(spec["concurrencyPolicy"]["enum"], json!(["Allow", "Forbid", "Replace"]));
    assert_eq!(spec["concurrencyPolicy"]["default"], "Allow");
    for limited in ["startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        assert_eq!(spec[limited]["minimum"], 0, "{limited}");
        assert_eq!(spec[limited].get("default"), None, "{limited}: the webhook gives it");
    }
    let active = &schema["status"]["properties"]["active"];
    assert_eq!((&active["minItems"], &active["maxItems"]), (&json!(1), &json!(10)));
    let template = &spec["jobTemplate"]["properties"]["spec"]["properties"]["template"]["properties"]["spec"];
    assert_eq!(template["required"], json!(["containers"]));
}

#[test]
fn the_deployment_names_the_objects_that_the_program_names() {
    let environment = Environment::of(Defaults::of(NAME, NAMESPACE), |_| None).unwrap();
    let manifests = manifests();
    let deployment = manifests.iter().find(|manifest| manifest["kind"] == "Deployment").unwrap();
    let variables = deployment["spec"]["template"]["spec"]["containers"][0]["env"].as_array().unwrap();
    for (name, value) in [
        ("SERVICE_NAME", &environment.service),
        ("SECRET_NAME", &environment.secret),
        ("MUTATING_WEBHOOK_NAME", &environment.mutating),
        ("VALIDATING_WEBHOOK_NAME", &environment.validating),
    ] {
        let variable = variables.iter().find(|variable| variable["name"] == name).unwrap();
        assert_eq!(variable["value"], **value, "{name}");
    }
    assert_eq!(deployment["metadata"]["namespace"], *environment.namespace);
}

#[test]
fn webhooks_give_defaults_and_refuse_names_and_schedules() -> Result<()> {
    run(async {
        let cluster = start().await?;
        let made = cluster.create(&cron_job("a", &json!({}))).await?;
        let given = |spec: &Value| {
            ["concurrencyPolicy", "suspend", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"]
                .map(|field| spec[field].clone())
        };
        assert_eq!(given(&made["spec"]), [json!("Allow"), json!(false), json!(3), json!(1)]);
        let own = json!({
            "concurrencyPolicy": "Forbid", "suspend": true, "successfulJobsHistoryLimit": 5, "failedJobsHistoryLimit": 0,
        });
        let made = cluster.create(&cron_job("b", &own)).await?;
        assert_eq!(given(&made["spec"]), given(&own), "what is set stays");

        for sample in yaml::documents(include_str!("../sample.yaml"))? {
            cluster.create(&sample).await?;
        }

        let (fits, long) = ("n".repeat(52), "n".repeat(53));
        cluster.create(&cron_job(&fits, &json!({}))).await?;
        let refused =
            cluster.create(&cron_job(&long, &json!({"schedule": "invalid-cron-schedule"}))).await.unwrap_err();
        let Some(kube::Error::Api(status)) = refused.downcast_ref() else { panic!("{refused:?}") };
        assert_eq!(status.code, 422);
        for wanted in [
            "must be no more than 52 characters",
            "spec.schedule: Invalid value: \"invalid-cron-schedule\": expected exactly 5 fields, found 1",
        ] {
            assert!(status.message.contains(wanted), "{}", status.message);
        }
        let cron_jobs = cluster.api::<CronJob>();
        let refused = change(&cron_jobs, "a", &json!({"schedule": "61 * * * *"})).await.unwrap_err();
        assert!(refused.to_string().contains("spec.schedule"), "{refused}");
        change(&cron_jobs, "a", &json!({"schedule": "@every 10m"})).await?;
        Ok(())
    })
}

// === the controller ===

#[test]
fn active_jobs_stand_in_the_status() -> Result<()> {
    run(async {
        let cluster = start().await?;
        let made = cluster.create(&cron_job("test-cronjob", &json!({"schedule": "1 * * * *"}))).await?;
        let cron_jobs = cluster.api::<CronJob>();
        cluster.until(&cron_jobs, "test-cronjob", "has a status", has_status).await?;
        cluster.quiet(Duration::from_secs(10)).await?;
        assert_eq!(active(&cron_jobs.get("test-cronjob").await?), [""; 0]);

        let job = cluster.create(&job_of(&made, "test-job")).await?;
        let lists_it = |cron_job: &CronJob| active(cron_job) == ["test-job"];
        let seen = cluster.until(&cron_jobs, "test-cronjob", "lists the Job", lists_it).await?;
        assert!(has_condition("Progressing", "True", "JobsActive")(&seen), "{seen:?}");
        assert_eq!(
            json!(seen.status.unwrap().active[0]),
            json!({
                "apiVersion": "batch/v1", "kind": "Job", "namespace": "default", "name": "test-job",
                "uid": job["metadata"]["uid"],
            })
        );
        for number in 0..11 {
            cluster.create(&job_of(&made, &format!("more-{number:02}"))).await?;
        }
        let says_twelve = |cron_job: &CronJob| {
            let mut conditions = cron_job.status.iter().flat_map(|status| &status.conditions);
            conditions.any(|condition| condition.message == "12 Jobs are active")
        };
        let seen = cluster.until(&cron_jobs, "test-cronjob", "counts all of them", says_twelve).await?;
        assert_eq!(active(&seen).len(), 10, "no more fit");
        Ok(())
    })
}

#[test]
fn a_run_makes_a_job_from_the_template() -> Result<()> {
    run(async {
        let cluster = start().await?;
        let made = cluster.create(&cron_job("t", &json!({}))).await?;
        let (cron_jobs, jobs) = (cluster.api::<CronJob>(), cluster.api::<Job>());
        let name = of_minute("t", 5);
        let job = cluster.until(&jobs, &name, "is there", |_| true).await?;
        assert_eq!(job.metadata.annotations.unwrap()[SCHEDULED_AT], "2026-01-01T00:05:00Z");
        let owner = &job.metadata.owner_references.unwrap()[0];
        assert_eq!((&json!(owner.uid), owner.controller), (&made["metadata"]["uid"], Some(true)));
        let pod = job.spec.unwrap().template.spec.unwrap();
        assert_eq!((&*pod.containers[0].name, pod.restart_policy.as_deref()), ("c", Some("OnFailure")));

        let lists_it = |cron_job: &CronJob| active(cron_job) == [&*name];
        let seen = cluster.until(&cron_jobs, "t", "lists the Job", lists_it).await?;
        assert_eq!(json!(seen.status)["lastScheduleTime"], "2026-01-01T00:05:00Z");
        // Nothing happens until the next run.
        cluster.quiet(Duration::from_mins(4)).await?;
        end(&jobs, &name, "Complete", 5).await?;
        let is_idle = has_condition("Progressing", "False", "NoJobsActive");
        let seen = cluster.until(&cron_jobs, "t", "lists none", is_idle).await?;
        assert_eq!(active(&seen), [""; 0]);
        cluster.until(&jobs, &of_minute("t", 10), "is there", |_| true).await?;
        Ok(())
    })
}

#[test]
fn histories_keep_the_jobs_that_started_last() -> Result<()> {
    run(async {
        let cluster = start().await?;
        let spec = json!({"schedule": "@yearly", "successfulJobsHistoryLimit": 2});
        let made = cluster.create(&cron_job("h", &spec)).await?;
        let (cron_jobs, jobs) = (cluster.api::<CronJob>(), cluster.api::<Job>());
        let ends =
            [("a", "Complete", 9), ("b", "Complete", 1), ("c", "Complete", 7), ("d", "Failed", 2), ("e", "Failed", 3)];
        for (name, how, started) in ends {
            cluster.create(&job_of(&made, name)).await?;
            end(&jobs, name, how, started).await?;
        }
        cluster.until_gone(&jobs, "b").await?;
        cluster.until_gone(&jobs, "d").await?;
        cluster.quiet(Duration::from_hours(1)).await?;
        assert_eq!(names(&jobs).await?, ["a", "c", "e"], "two and, by default, one");
        let seen = cron_jobs.get("h").await?;
        assert!(has_condition("Degraded", "True", "JobsFailed")(&seen), "{seen:?}");
        assert!(has_condition("Available", "False", "JobsFailed")(&seen), "{seen:?}");
        Ok(())
    })
}

#[test]
fn a_job_that_no_history_keeps_is_not_made_again() -> Result<()> {
    run(async {
        let cluster = start().await?;
        cluster.create(&cron_job("t", &json!({"successfulJobsHistoryLimit": 0}))).await?;
        let (cron_jobs, jobs) = (cluster.api::<CronJob>(), cluster.api::<Job>());
        let name = of_minute("t", 5);
        cluster.until(&jobs, &name, "is there", |_| true).await?;
        end(&jobs, &name, "Complete", 5).await?;
        cluster.until_gone(&jobs, &name).await?;
        cluster.quiet(Duration::from_mins(3)).await?;
        assert_eq!(json!(cron_jobs.get("t").await?)["status"]["lastScheduleTime"], "2026-01-01T00:05:00Z");
        Ok(())
    })
}

#[test]
fn policies_decide_what_runs_at_once() -> Result<()> {
    run(async {
        let cluster = start().await?;
        for policy in ["Allow", "Forbid", "Replace"] {
            let spec = json!({"concurrencyPolicy": policy});
            cluster.create(&cron_job(&policy.to_lowercase(), &spec)).await?;
        }
        let jobs = cluster.api::<Job>();
        cluster.pass(Duration::from_mins(6)).await;
        assert_eq!(names(&jobs).await?, [of_minute("allow", 5), of_minute("forbid", 5), of_minute("replace", 5)]);
        cluster.pass(Duration::from_mins(5)).await;
        assert_eq!(
            names(&jobs).await?,
            [of_minute("allow", 5), of_minute("allow", 10), of_minute("forbid", 5), of_minute("replace", 10)]
        );
        // The run that waits comes when the other has ended.
        end(&jobs, &of_minute("forbid", 5), "Complete", 5).await?;
        cluster.until(&jobs, &of_minute("forbid", 10), "is there", |_| true).await?;
        Ok(())
    })
}

#[test]
fn what_is_suspended_makes_up_for_the_latest_run_alone() -> Result<()> {
    run(async {
        let cluster = start().await?;
        cluster.create(&cron_job("t", &json!({"suspend": true}))).await?;
        let (cron_jobs, jobs) = (cluster.api::<CronJob>(), cluster.api::<Job>());
        let is_suspended = has_condition("Available", "False", "Suspended");
        cluster.until(&cron_jobs, "t", "is suspended", is_suspended).await?;
        cluster.quiet(Duration::from_mins(11)).await?;
        change(&cron_jobs, "t", &json!({"suspend": false})).await?;
        cluster.until(&jobs, &of_minute("t", 10), "is there", |_| true).await?;
        let is_available = has_condition("Available", "True", "NoJobsFailed");
        cluster.until(&cron_jobs, "t", "is available", is_available).await?;
        assert_eq!(names(&jobs).await?, [of_minute("t", 10)]);
        Ok(())
    })
}

#[test]
fn too_many_missed_runs_wait_for_a_deadline() -> Result<()> {
    run(async {
        let mut cluster = start().await?;
        cluster.create(&cron_job("t", &json!({}))).await?;
        let (cron_jobs, jobs) = (cluster.api::<CronJob>(), cluster.api::<Job>());
        cluster.until(&cron_jobs, "t", "has a status", has_status).await?;
        cluster.stop().await?;
        cluster.pass(Duration::from_hours(9)).await;
        cluster.run(operator::add)?;
        let has_problem = has_condition("Degraded", "True", "TooManyMissedRuns");
        cluster.until(&cron_jobs, "t", "has missed too many runs", has_problem).await?;
        cluster.pass(Duration::from_mins(6)).await;
        assert_eq!(names(&jobs).await?, [""; 0]);
        let events = cluster.api::<Event>().list(&ListParams::default()).await?.items;
        let said = events.iter().find(|event| event.reason.as_deref() == Some("TooManyMissedRuns")).unwrap();
        assert_eq!(said.regarding.as_ref().unwrap().name.as_deref(), Some("t"));

        change(&cron_jobs, "t", &json!({"startingDeadlineSeconds": 600})).await?;
        let is_well = has_condition("Degraded", "False", "NoJobsFailed");
        cluster.until(&cron_jobs, "t", "is well again", is_well).await?;
        cluster.until(&jobs, &of_minute("t", 9 * 60 + 5), "is there", |_| true).await?;
        assert_eq!(names(&jobs).await?.len(), 1, "the latest run alone");
        Ok(())
    })
}

// === the program ===

/// A program that does not outlive its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_program_runs_without_webhooks_where_the_environment_says_so() -> Result<()> {
    tokio::runtime::Runtime::new()?.block_on(async {
        let program = || Command::new(env!("CARGO_BIN_EXE_cronjob"));
        let mut manifests = yaml::documents(&String::from_utf8(program().arg("manifests").output()?.stdout)?)?;
        manifests.retain(|manifest| !manifest["kind"].as_str().unwrap().ends_with("WebhookConfiguration"));
        let mut cluster = Cluster::at(Timestamp::now(), NAME, &manifests).await?;
        let mut program = program();
        program.args(["--metrics-addr=0", "--health-probe-addr=0"]).env("ENABLE_WEBHOOKS", "false");
        program.env("KUBECONFIG", cluster.kubeconfig()?);
        let _running = Running(program.stdin(Stdio::null()).spawn()?);
        let spec = json!({"schedule": "@yearly", "suspend": true});
        let made = cluster.create(&cron_job("t", &spec)).await?;
        assert_eq!(made["spec"].get("successfulJobsHistoryLimit"), None, "no webhook gives it");
        let is_suspended = has_condition("Available", "False", "Suspended");
        cluster.until(&cluster.api::<CronJob>(), "t", "is suspended", is_suspended).await?;
        Ok(())
    })
}
