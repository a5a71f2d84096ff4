//! No text stops the reader, and what is taken means the same each time.

use proptest::prelude::*;

use super::super::{Catalogue, diff};
use super::FULL;

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "(?s).{0,400}") {
        let (catalogue, problems) = Catalogue::check(&text);
        prop_assert_eq!(catalogue.is_none(), problems.has_errors());
    }

    /// Texts that are nearly TOML get further than arbitrary ones.
    #[test]
    fn no_text_of_toml_tokens_makes_the_reader_panic(
        tokens in proptest::collection::vec(
            prop::sample::select(vec![
                "[", "]", "[[", "]]", "{", "}", "=", ".", ",", "\n", "\"", "'", "\"\"\"", "tools", "models", "a", "é",
                "kind", "\"http\"", "effect", "1", "-", "nan", "1979-05-27", "true", "#", " ", "\\u", "\r", "0x1",
            ]),
            0..60,
        ),
    ) {
        let (_, problems) = Catalogue::check(&tokens.concat());
        _ = problems.to_string();
    }

    #[test]
    fn no_damage_to_a_good_text_makes_the_reader_panic(
        cut in 0..FULL.len(), length in 0..40_usize, put in "(?s).{0,6}", twice in any::<prop::sample::Index>(),
    ) {
        let end = (cut + length).min(FULL.len());
        let damaged = format!("{}{put}{}", &FULL[..cut], &FULL[end..]);
        let lines: Vec<_> = damaged.split('\n').collect();
        let doubled = format!("{damaged}\n{}", lines[twice.index(lines.len())]);
        for text in [damaged.as_str(), doubled.as_str()] {
            let (catalogue, problems) = Catalogue::check(text);
            _ = problems.to_string();
            // What is taken means the same each time it is read.
            if let Some(catalogue) = catalogue {
                prop_assert!(diff(&catalogue, &Catalogue::parse(text).unwrap()).is_empty());
            }
        }
    }
}
