//! ElasticQuota: pods of a quota may use its runtime, which is divided among quotas by what they request.

mod check;
mod claim;
mod division;
mod forest;
mod ledger;
mod revoke;
mod settings;
mod status;
mod sums;
#[cfg(test)]
mod tests;

pub use self::{
    check::Shortage,
    claim::{Claim, is_preemptible},
    forest::{Forest, Node},
    ledger::{Counted, Ledger},
    revoke::{Overuse, Running, revoked},
    settings::Settings,
    status::QuotaStatus,
    sums::{Kind, Sums},
};
