//! The scheduler's engine without the scheduler: filled once with the objects of a cluster or of files. Nothing is written, and
//! nothing goes on.

use anyhow::Result;
use jiff::Timestamp;
use koord_program::{
    gates::Gates,
    plan::{self, Source},
};
use koord_runtime::{Core, clock::Moment};
use koord_scheduler_engine::{Engine, Reads};
use koord_scheduler_runtime::{Transformers, feed::Feed};
use kube::Client;
use serde_json::Value;

use crate::{Configuration, NAME, engine, gates::transformers};

/// An engine that knows the objects of a source, at this time.
pub async fn snapshot(configuration: &Configuration, gates: &Gates, source: Source, now: Timestamp) -> Result<Engine> {
    let transformers = transformers(gates);
    let (mut core, _) = plan::core(NAME, now)?;
    let mut engine = engine(configuration, gates, core.random().clone())?;
    engine.tick(now);
    fill(&mut engine, &mut core, source, transformers).await?;
    Ok(engine)
}

/// Brings objects of files that are new or changed into such an engine, with the same transformers.
pub async fn amend(engine: &mut Engine, objects: Vec<Value>, transformers: Transformers) -> Result<()> {
    let (mut core, _) = plan::core(NAME, engine.cluster().time())?;
    fill(engine, &mut core, Source::Files(objects), transformers).await
}

/// Every object of a cluster that an engine with such plugins reads.
pub async fn objects(reads: &Reads, client: &Client, now: Timestamp) -> Result<Vec<Value>> {
    let (mut core, _) = plan::core(NAME, now)?;
    Feed::of(&mut core, reads);
    plan::read(&core, client).await
}

async fn fill(engine: &mut Engine, core: &mut Core, source: Source, transformers: Transformers) -> Result<()> {
    let feed = Feed::transforming(core, &engine.reads(), transformers);
    plan::fill_caches(core, source).await?;
    feed.fill(engine, Moment::default());
    Ok(())
}
