//! Patterns of paths as a shell has them, where `*` also stands for slashes.

/// Whether a text has a pattern with `*`, `?` and sets such as `[ab]`, `[0-9]` or `[!x]`.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut position) = (0, 0);
    // Where the last star stands, and how much of the text it has taken.
    let mut star: Option<(usize, usize)> = None;
    while position < text.len() {
        let step = match pattern.get(at) {
            Some('*') => {
                star = Some((at, position));
                at += 1;
                continue;
            }
            Some('?') => Some(1),
            Some('[') => set(&pattern[at..], text[position]),
            Some(character) if *character == text[position] => Some(1),
            _ => None,
        };
        match (step, &mut star) {
            (Some(length), _) => {
                at += length;
                position += 1;
            }
            (None, Some((from, taken))) => {
                *taken += 1;
                at = *from + 1;
                position = *taken;
            }
            (None, None) => return false,
        }
    }
    pattern[at..].iter().all(|rest| *rest == '*')
}

/// The length of the set at the beginning of a pattern when a character is in it; a bracket that is never closed stands for itself.
fn set(pattern: &[char], wanted: char) -> Option<usize> {
    let is_negated = pattern.get(1) == Some(&'!');
    let first = if is_negated { 2 } else { 1 };
    let Some(length) = pattern.iter().skip(first + 1).position(|character| *character == ']') else {
        return (wanted == '[').then_some(1);
    };
    let end = first + 1 + length;
    let mut members = &pattern[first..end];
    let mut is_in = false;
    while let [from, rest @ ..] = members {
        if let ['-', to, rest @ ..] = rest {
            is_in |= (*from..=*to).contains(&wanted);
            members = rest;
        } else {
            is_in |= *from == wanted;
            members = rest;
        }
    }
    (is_in != is_negated).then_some(end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_a_shell_over_whole_paths() {
        let table = [
            ("*", "cgroup/cpu/cpu.shares", true),
            ("*blkio*", "cgroup/blkio/kubepods/blkio.weight", true),
            ("*memory.high", "cgroup/memory/a/memory.high", true),
            ("*memory.high", "cgroup/memory/a/memory.high.x", false),
            ("proc/sys/vm/watermark*", "proc/sys/vm/watermark_scale_factor", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("cpu[01]", "cpu1", true),
            ("cpu[!01]", "cpu1", false),
            ("cpu[0-3]/x", "cpu2/x", true),
            ("a?c", "abc", true),
            ("[", "[", true),
            ("", "", true),
            ("", "a", false),
        ];
        for (pattern, text, wanted) in table {
            assert_eq!(matches(pattern, text), wanted, "{pattern} {text}");
        }
    }
}
