//! The framework's snapshot without the program: filled once with the objects of a cluster or of files. Nothing is written, and nothing goes on.

use anyhow::Result;
use jiff::Timestamp;
use koord_descheduler_framework::{Cluster, Descheduler};
use koord_descheduler_runtime::Feed;
use koord_program::plan::{self, Source};

use crate::NAME;

/// What a descheduler would see of a source, at this time.
pub async fn snapshot(descheduler: &Descheduler, source: Source, now: Timestamp) -> Result<Cluster> {
    let (mut core, _) = plan::core(NAME, now)?;
    let mut feed = Feed::of(&mut core, &descheduler.reads());
    plan::fill_caches(&core, source).await?;
    let mut cluster = Cluster::default();
    feed.fill(&mut cluster);
    Ok(cluster)
}
