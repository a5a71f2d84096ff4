//! Counts dead letters by the class of their reason, for both brokers. A reason is `class: detail`; the class is a
//! metric's label, so only a short word is taken for one.

/// The label for reasons that name no class.
const OTHER: &str = "other";
const LONGEST_CLASS: usize = 40;

/// Counts one dead letter.
pub(super) fn count(reason: &str) {
    metrics::counter!("countersign_dead_letters_total", "reason" => class(reason).to_owned()).increment(1);
}

/// The class of a reason: what stands before its first colon, where that is one lower-case word.
fn class(reason: &str) -> &str {
    let class = reason.split_once(':').map_or(reason, |(class, _)| class);
    let word = !class.is_empty()
        && class
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    if word && class.len() <= LONGEST_CLASS {
        class
    } else {
        OTHER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_short_word_is_a_class() {
        assert_eq!(class("invalid_job: unknown field `actor`"), "invalid_job");
        assert_eq!(class("no_such_decision"), "no_such_decision");
        for reason in ["", ": x", "The job is broken", "run 7: gone", &"a".repeat(41)] {
            assert_eq!(class(reason), OTHER, "{reason}");
        }
    }
}
