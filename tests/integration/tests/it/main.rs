//! The whole house against two servers: the embedded one always, a real kube-apiserver when `KUBEBUILDER_ASSETS` names one.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod chart;
mod circles;
mod coming_from;
mod conversions;
mod dependencies;
mod divergences;
mod documentation;
mod doors;
mod gates;
mod images;
mod inspection;
mod installation;
mod kubectl_commands;
mod leadership;
mod nodes;
mod packaging;
mod place;
mod policies;
mod public_items;
mod readme;
mod scrape;
mod servers;
mod suite;
mod taken_over;
mod takes_over;
mod traces;
mod watchers;
mod webhooks;
mod words;
