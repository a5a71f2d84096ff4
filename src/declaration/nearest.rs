//! Which known name a misspelt one was meant to be. It only suggests; nothing is ever taken for what it
//! merely resembles.

/// The candidate that is nearest to the name, if any is near enough to be what was meant: at most a third of
/// the letters differ (one in a very short name), case and `-` for `_` aside.
#[must_use]
pub fn nearest<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let written = folded(name);
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let known = folded(candidate);
            let distance = strsim::damerau_levenshtein(&written, &known);
            let longer = written.chars().count().max(known.chars().count());
            let limit = (longer / 3).clamp(1, 4);
            // In a name of one or two letters everything is near everything.
            let near = distance <= limit && (longer > 2 || distance == 0);
            near.then_some((distance, candidate))
        })
        .min_by(|a, b| a.cmp(b))
        .map(|(_, candidate)| candidate)
}

/// No name that could be meant is longer than this, and the distance costs the product of the lengths.
const LONGEST: usize = 128;

fn folded(name: &str) -> String {
    name.chars()
        .take(LONGEST)
        .flat_map(char::to_lowercase)
        .map(|c| if c == '-' { '_' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&str; 5] = [
        "requires_approval",
        "requires_admin",
        "data_class",
        "effect",
        "url",
    ];

    #[test]
    fn a_slip_is_recognised() {
        for (written, meant) in [
            ("requires_aproval", "requires_approval"),
            ("requires-approval", "requires_approval"),
            ("Requires_Admin", "requires_admin"),
            ("dataclass", "data_class"),
            ("efect", "effect"),
            ("ulr", "url"),
        ] {
            assert_eq!(nearest(written, KEYS), Some(meant), "{written}");
        }
    }

    #[test]
    fn another_word_is_not() {
        for written in ["colour", "", "x", "effectiveness_of_it", "uuuuuuu"] {
            assert_eq!(nearest(written, KEYS), None, "{written}");
        }
        assert_eq!(nearest("anything", []), None);
    }

    #[test]
    fn of_two_equally_near_the_first_in_the_alphabet_is_named() {
        assert_eq!(nearest("tool_c", ["tool_b", "tool_a"]), Some("tool_a"));
    }
}
