//! The table.

use std::time::Duration;

use crate::{
    measure::{Column, Phase, TOUCHES},
    process::Memory,
};

/// Prints a row for each figure and a column for each operator.
pub fn print(columns: &[Column], parents: usize, quiet_s: u64) {
    println!("{parents} parents with four children each\n");
    let row = |title: &str, of: &dyn Fn(&Column) -> String| {
        println!("| {title} | {} |", columns.iter().map(of).collect::<Vec<_>>().join(" | "));
    };
    row("", &|column| column.title.to_owned());
    println!("|{}", "---|".repeat(columns.len() + 1));
    row("lines of code", &|column| column.lines.to_string());
    let phase = |title: &str, of: fn(&Column) -> &Phase| {
        row(&format!("{title}: writes; reads; watches"), &|column| {
            format!("{}; {}", requests(of(column)), of(column).counts.watches)
        });
        row(&format!("{title}: CPU; of the API server"), &|column| {
            format!("{} s; {} s", seconds(of(column).cpu), seconds(of(column).server_cpu))
        });
        row(&format!("{title}: until quiet"), &|column| format!("{} s", seconds(of(column).wall)));
        row(&format!("{title}: resident; anonymous; peak"), &|column| memory(of(column).memory));
    };
    phase("bring-up", |column| &column.bring_up);
    let quiet = format!("quiet, {quiet_s} s");
    row(&format!("{quiet}: writes; reads"), &|column| requests(&column.quiet));
    row(&format!("{quiet}: watches opened; lease requests"), &|column| {
        format!("{}; {}", column.quiet.counts.watches, column.quiet.counts.leases)
    });
    row(&format!("{quiet}: CPU"), &|column| format!("{:.1} ms", column.quiet.cpu.as_secs_f64() * 1e3));
    row(&format!("{quiet}: resident; anonymous; peak"), &|column| memory(column.quiet.memory));
    let touches = TOUCHES.min(parents);
    let touch = |title: &str, of: fn(&Column) -> &Phase| {
        row(&format!("{title}: requests"), &|column| {
            format!("{:.2}", of(column).counts.work() as f64 / touches as f64)
        });
        row(&format!("{title}: CPU"), &|column| {
            format!("{:.0} µs", of(column).cpu.as_secs_f64() * 1e6 / touches as f64)
        });
        row(&format!("{title}: first request to last answer"), &|column| {
            of(column).reconcile.map_or("–".to_owned(), |time| format!("{:.1} ms", time.as_secs_f64() * 1e3))
        });
    };
    touch("a label of a parent", |column| &column.parent_touched);
    touch("a label of a child", |column| &column.child_touched);
    touch("one child and the status change", |column| &column.changed);
    phase("restart", |column| &column.restart);
    row("events written", &|column| column.bring_up.counts.events.to_string());
    row("lines of log", &|column| column.said.0.to_string());
}

fn requests(phase: &Phase) -> String {
    format!("{}; {}", phase.counts.writes, phase.counts.reads)
}

fn seconds(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64())
}

fn memory(memory: Memory) -> String {
    let mega = |bytes: u64| format!("{:.1}", bytes as f64 / 1e6);
    format!("{}; {}; {} MB", mega(memory.resident), mega(memory.anonymous), mega(memory.peak))
}
