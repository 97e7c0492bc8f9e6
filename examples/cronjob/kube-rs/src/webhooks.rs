//! Both webhooks, over TLS with the certificate of a folder.

use std::{net::SocketAddr, path::Path};

use axum::{Json, Router, routing::post};
use axum_server::tls_rustls::RustlsConfig;
use kube::{
    ResourceExt as _,
    core::{
        DynamicObject,
        admission::{AdmissionRequest, AdmissionResponse, AdmissionReview},
    },
};
use serde_json::json;

use crate::{
    api::{CronJob, CronJobSpec},
    schedule::Schedule,
};

type Review = Json<AdmissionReview<CronJob>>;
type Answer = Json<AdmissionReview<DynamicObject>>;

/// Serves until the process ends.
pub async fn serve(address: SocketAddr, certificates: &Path) -> anyhow::Result<()> {
    let tls = RustlsConfig::from_pem_file(certificates.join("tls.crt"), certificates.join("tls.key")).await?;
    let router = Router::new()
        .route("/mutate-batch-tutorial-kubebuilder-io-v1-cronjob", post(|review: Review| answer(review, give_defaults)))
        .route("/validate-batch-tutorial-kubebuilder-io-v1-cronjob", post(|review: Review| answer(review, validate)));
    axum_server::bind_rustls(address, tls).serve(router.into_make_service()).await?;
    Ok(())
}

async fn answer(Json(review): Review, decide: fn(&CronJob, AdmissionResponse) -> AdmissionResponse) -> Answer {
    let request: AdmissionRequest<CronJob> = match review.try_into() {
        Ok(request) => request,
        Err(error) => return Json(AdmissionResponse::invalid(error).into_review()),
    };
    let response = AdmissionResponse::from(&request);
    Json(match &request.object {
        Some(cron_job) => decide(cron_job, response).into_review(),
        None => response.into_review(),
    })
}

fn give_defaults(cron_job: &CronJob, response: AdmissionResponse) -> AdmissionResponse {
    let spec = &cron_job.spec;
    let defaulted = CronJobSpec {
        suspend: spec.suspend.or(Some(false)),
        successful_jobs_history_limit: spec.successful_jobs_history_limit.or(Some(3)),
        failed_jobs_history_limit: spec.failed_jobs_history_limit.or(Some(1)),
        ..spec.clone()
    };
    let patch = json_patch::diff(&json!({ "spec": spec }), &json!({ "spec": defaulted }));
    response.with_patch(patch).unwrap_or_else(AdmissionResponse::invalid)
}

fn validate(cron_job: &CronJob, response: AdmissionResponse) -> AdmissionResponse {
    let (name, schedule) = (cron_job.name_any(), &cron_job.spec.schedule);
    let mut errors = Vec::new();
    if name.len() > 52 {
        errors.push(format!("metadata.name: Invalid value: {name:?}: must be no more than 52 characters"));
    }
    if let Err(why) = schedule.parse::<Schedule>() {
        errors.push(format!("spec.schedule: Invalid value: {schedule:?}: {why}"));
    }
    if errors.is_empty() { response } else { response.deny(errors.join(", ")) }
}
