//! How objects are converted between versions.
//!
//! The certificate authority of a webhook is no matter of this check: a definition is created before its webhook server
//! writes one there.

use serde_json::Value;

use super::{check_word, client_config, items, text};
use crate::{
    field::{Errors, Path},
    names::dns1035_label,
};

pub(super) fn check(conversion: &Value, at: &Path<'_>, errors: &mut Errors) {
    if conversion.is_null() {
        return;
    }
    let webhook = &conversion["webhook"];
    let config = Some(&webhook["clientConfig"]).filter(|config| config.is_object());
    let reviews = items(webhook, "conversionReviewVersions");
    let (config_at, reviews_at) = (at.child("webhookClientConfig"), at.child("conversionReviewVersions"));
    let strategy = text(conversion, "strategy");
    check_word(strategy, &["None", "Webhook"], &at.child("strategy"), errors);
    if strategy == "Webhook" {
        match config {
            None => errors.required(&config_at, "required when strategy is set to Webhook"),
            Some(config) => client_config::check_of_conversion(config, &config_at, errors),
        }
        check_reviews(reviews, &reviews_at, errors);
        return;
    }
    let detail = "should not be set when strategy is not set to Webhook";
    if config.is_some() {
        errors.forbidden(&config_at, detail);
    }
    if !reviews.is_empty() {
        errors.forbidden(&reviews_at, detail);
    }
}

fn check_reviews(reviews: &[Value], at: &Path<'_>, errors: &mut Errors) {
    if reviews.is_empty() {
        errors.required(at, "");
        return;
    }
    for (index, version) in reviews.iter().enumerate() {
        let name = version.as_str().unwrap_or_default();
        if reviews[..index].contains(version) {
            errors.invalid(&at.index(index), name, "duplicate version");
            continue;
        }
        for message in dns1035_label(name) {
            errors.invalid(&at.index(index), name, message);
        }
    }
    if !reviews.iter().any(|version| version == "v1" || version == "v1beta1") {
        errors.invalid(at, reviews, "must include at least one of v1, v1beta1");
    }
}
