//! docs/descheduler.md is true: its commands of koordctl are run on the files that it names, and print what it shows.

use crate::pages::{Desk, Step, page, steps};

const PAGE: &str = "descheduler.md";

#[test]
fn the_commands_of_the_page_print_what_it_shows() {
    let Some(desk) = Desk::set_up("descheduler-page") else { return };
    let page = page(PAGE);
    let mine: Vec<Step> = steps(&page).into_iter().filter(|step| step.commands.starts_with("koordctl ")).collect();
    assert!(mine.len() >= 5, "{}", mine.len());
    let wrong: Vec<String> = mine.iter().filter_map(|step| desk.check(PAGE, step)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
