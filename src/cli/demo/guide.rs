//! What the demo says once it is up: who there is, what waits, and three things to try, each a command that can be
//! copied as it stands.

use super::seed::{Story, WaitingRun};
use crate::cli::copyable::Program;
use crate::cli::layout::{Cell, Table};
use crate::cli::paint::{Paint, Style};
use crate::model::Verdict;

/// The guide. `program` is how this very executable is called with the demo's settings.
#[must_use]
pub fn guide(program: &Program, runs: &[WaitingRun], paint: Paint) -> String {
    let mut text = format!(
        "{}\n\n",
        paint.bold("Countersign is up, with four runs that wait for a decision.")
    );
    text.push_str(&people(paint));
    text.push('\n');
    text.push_str(&waiting(runs, paint));
    text.push_str(&format!("\n{}\n", paint.bold("Try, in another terminal:")));
    for (number, (what, who, verdict, story)) in TRIES.into_iter().enumerate() {
        let Some(run) = runs.iter().find(|run| run.story == story) else {
            continue;
        };
        let command = program.decide(verdict, run.id(), run.turn.ordinal, &run.turn.digest(), who);
        text.push_str(&format!(
            "\n{}. {what}\n   {}\n",
            number + 1,
            paint.apply(Style::Cyan, &command)
        ));
    }
    text.push_str(&format!("\n{}\n", paint.bold("And:")));
    let mut more = Table::default();
    for (words, about) in [
        ("runs list", "what waits and what became of it"),
        ("events follow", "what happens, as it happens"),
        (
            "runs start --configuration support --as user:olga --input 'Refund P-1004, please'",
            "a run of your own",
        ),
    ] {
        more.row([
            Cell::new(Style::Cyan, program.with(words)),
            Cell::new(Style::Dim, about),
        ]);
    }
    text.push_str(&more.render(paint));
    text.push_str(&format!(
        "\n{}\n",
        paint.dim("Ctrl-C ends the demo and removes all of it.")
    ));
    text
}

/// What to try: why, who, which verdict, on which run.
const TRIES: [(&str, &str, Verdict, Story); 5] = [
    (
        "Gina may approve, but could not make a refund herself, so she cannot release one:",
        "user:gina",
        Verdict::Approve,
        Story::Refund,
    ),
    (
        "Ada could, so hers stands. The refund runs once, as its owner Olga:",
        "user:ada",
        Verdict::Approve,
        Story::Refund,
    ),
    (
        "A service account may release what only reads:",
        "service:sweeper",
        Verdict::Approve,
        Story::Look,
    ),
    (
        "Olga cannot approve her own run where a second approver is required:",
        "user:olga",
        Verdict::Approve,
        Story::TwoEyes,
    ),
    (
        "Gina may always say no:",
        "user:gina",
        Verdict::Deny,
        Story::Mixed,
    ),
];

fn people(paint: Paint) -> String {
    let mut table = Table::default();
    for (who, about) in [
        ("user:ada", "an admin, in finance"),
        ("user:gina", "may decide runs (agent_approve); not in finance"),
        ("user:olga", "owns the runs; in finance"),
        ("service:sweeper", "a service account with agent:approve"),
    ] {
        table.row([Cell::new(Style::Bold, who), about.into()]);
    }
    table.render(paint)
}

fn waiting(runs: &[WaitingRun], paint: Paint) -> String {
    let mut table = Table::default();
    for run in runs {
        table.row([
            Cell::new(Style::Yellow, run.id().to_string()),
            run.story.title().into(),
        ]);
    }
    table.render(paint)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::cli::demo::seed::waiting_runs;
    use crate::clock::SystemClock;

    #[test]
    fn each_command_names_the_run_its_turn_and_its_digest() {
        let runs = waiting_runs(&SystemClock).unwrap();
        let program = Program::at(
            Path::new("/opt/my demo/countersign"),
            Some(Path::new("/tmp/demo.toml")),
        );
        let text = guide(&program, &runs, Paint::PLAIN);
        let start = "'/opt/my demo/countersign' --config /tmp/demo.toml decide";
        assert_eq!(text.matches(start).count(), TRIES.len(), "{text}");
        for run in &runs {
            assert!(
                text.contains(&format!("{} --turn 1 --digest {}", run.id(), run.turn.digest())),
                "{text}"
            );
        }
    }
}
