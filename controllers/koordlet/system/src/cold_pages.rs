//! `memory.idle_page_stats` of kernels with kidled: for how long pages were not used.

use crate::{
    parse_error::ParseError,
    text::{Field, fields, lines},
};

const FILE: &str = "memory.idle_page_stats";
/// Lines of the file, comments included.
const LINES: usize = 31;
/// Ages in the file, from the shortest to the longest.
const AGES: usize = 8;
/// From this age on a page is cold.
const COLD_FROM: usize = 5;
/// Rows of page cache that can be evicted: inactive, clean and dirty, of the file system and of shared memory.
const ROWS: [&str; 4] = ["cfei", "dfei", "cfui", "dfui"];

/// The bytes of page cache that were not used for long: the sum over the rows cfei, dfei, cfui and dfui of all ages from the sixth on. Saturates.
///
/// Fails where the text has not 31 lines, or one of the four rows is missing, has no eight ages, or holds something else than numbers.
pub fn parse_cold_page_bytes(text: &[u8]) -> Result<u64, ParseError> {
    let text = text.trim_ascii();
    if lines(text).count() != LINES {
        return Err(Field { file: FILE, field: "text" }.malformed(text, "of 31 lines"));
    }
    ROWS.into_iter().try_fold(0_u64, |sum, row| Ok(sum.saturating_add(cold_bytes(text, row)?)))
}

fn cold_bytes(text: &[u8], row: &'static str) -> Result<u64, ParseError> {
    let field = Field { file: FILE, field: row };
    let line = lines(text).find(|line| fields(line).next() == Some(row.as_bytes())).ok_or_else(|| field.missing())?;
    if fields(line).count() != AGES + 1 {
        return Err(field.malformed(line, "a row of eight ages"));
    }
    fields(line).skip(1 + COLD_FROM).try_fold(0_u64, |sum, age| Ok(sum.saturating_add(field.unsigned(Some(age))?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(row: impl Fn(&str) -> String) -> String {
        let head = "# version: 1.0\n# page_scans: 24\n# slab_scans: 0\n# scan_period_in_seconds: 120\n# use_hierarchy: 1\n\
            # buckets: 1,2,5,15,30,60,120,240\n#\n#   _-----=> clean/dirty\n#  / _----=> swap/file\n# | / _---=> evict/unevict\n\
            # || / _--=> inactive/active\n# ||| / _-=> slab\n# |||| /\n\
            # |||||             [1,2)          [2,5)         [5,15)        [15,30)        [30,60)       [60,120)      [120,240)     [240,+inf)\n";
        let rows = "csei dsei cfei dfei csui dsui cfui dfui csea dsea cfea dfea csua dsua cfua dfua slab";
        rows.split(' ').fold(head.to_owned(), |text, name| format!("{text}  {name} {}\n", row(name)))
    }

    #[test]
    fn page_cache_is_cold_from_the_sixth_age_on() {
        let text = text(|row| {
            let ages = match row {
                "cfei" | "cfui" => "100 200 300 400 500 4096 8192 16384",
                "dfei" => "200 400 600 800 1000 8192 16384 32768",
                "dfui" => "0 0 0 0 0 0 0 0",
                _ => "500 1000 1500 2000 2500 20480 40960 81920",
            };
            ages.replace(' ', "              ")
        });
        assert_eq!(parse_cold_page_bytes(text.as_bytes()), Ok(114_688));
        assert_eq!(parse_cold_page_bytes(format!("\n{text}\n\n").as_bytes()), Ok(114_688));
    }

    #[test]
    fn other_texts_are_refused() {
        let zeros = |_: &str| "0 0 0 0 0 0 0 0".to_owned();
        let good = text(zeros);
        for (text, error) in [
            (String::new(), "text is \"\", not of 31 lines"),
            (format!("{good}more\n"), "text is \"# version: 1.0\\n# page_scans: 24\\n# slab_s…\", not of 31 lines"),
            (good.replace("dfui", "none"), "lacks dfui"),
            (good.replace("cfui 0 0", "cfui 0"), "cfui is \"  cfui 0 0 0 0 0 0 0\", not a row of eight ages"),
        ] {
            let refused = parse_cold_page_bytes(text.as_bytes()).unwrap_err().to_string();
            let message = refused.strip_prefix("memory.idle_page_stats");
            assert_eq!(message.map(|message| message.trim_start_matches([':', ' '])), Some(error));
        }
        let most = text(|row| if ROWS.contains(&row) { format!("0 0 0 0 0 0 0 {}", u64::MAX) } else { zeros(row) });
        assert_eq!(parse_cold_page_bytes(most.as_bytes()), Ok(u64::MAX));
    }
}
