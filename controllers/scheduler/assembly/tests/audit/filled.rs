//! How many pods a node takes one after the other is the same whether plugins say it or all of them are tried.

use std::sync::Arc;

use koord_core::{key::ObjectKey, uid::Uid};
use koord_scheduler_engine::Engine;
use koord_scheduler_framework::{
    columns::Row,
    cycle::{Filled, NotNext, Rehearsal},
    pod::{Pod, Template},
};
use proptest::prelude::*;

/// How many alike pods there are of each template.
const ALIKE: usize = 12;

/// On every node, for some pods of each of these templates.
pub(crate) fn as_tried<'t>(
    engine: &Engine,
    templates: impl IntoIterator<Item = &'t Arc<Template>>,
) -> Result<(), TestCaseError> {
    let pods = templates.into_iter().enumerate().flat_map(|(kind, template)| {
        (0..ALIKE).map(move |number| {
            let name = format!("new-{kind}-{number}");
            let template = Arc::clone(template);
            Arc::new(Pod { key: ObjectKey::new("ns", &name), uid: Uid::from(&*name), template, ..Pod::default() })
        })
    });
    let pods: Vec<Arc<Pod>> = pods.collect();
    let mut cluster = engine.cluster().clone();
    cluster.exclude_all();
    let rows: Vec<Row> = cluster.rows().map(|(row, _)| row).collect();
    for profile in engine.profiles() {
        let mut rehearsal = Rehearsal::new(profile, &mut cluster, &pods);
        for row in &rows {
            let filled = rehearsal.fill(*row);
            prop_assert_eq!(filled, tried(&mut rehearsal, *row), "on {:?}", row);
        }
    }
    Ok(())
}

fn tried(rehearsal: &mut Rehearsal<'_>, row: Row) -> Filled {
    let point = rehearsal.point();
    let mut filled = Filled { pods: 0, refused: None };
    while filled.refused.is_none() && filled.pods < rehearsal.pods().len() {
        let taken = rehearsal.takes(filled.pods, row).map_err(NotNext::Filter);
        match taken.and_then(|()| rehearsal.place(filled.pods, row).map_err(NotNext::Reserve)) {
            Ok(()) => filled.pods += 1,
            Err(refused) => filled.refused = Some(refused),
        }
    }
    rehearsal.back_to(point);
    filled
}
