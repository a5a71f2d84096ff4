//! `countersign directory …`: who there is. `apply` makes the directory equal to a file and says what that
//! changes; `disable` and `enable` switch one actor, which takes effect at the next decision.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::arguments::{Globals, actor};
use super::directory_change::{Change, changes, written};
use super::exit::{Exit, Fault};
use super::input;
use super::layout::{Cell, Table, count};
use super::paint::{Paint, Style};
use super::session::Session;
use crate::identity::DirectoryFile;
use crate::model::{Actor, EventKind, Scope, UserGrant, visible};
use crate::store::{Directory, Guarded};

/// What can be done with the directory.
#[derive(Debug, Subcommand)]
pub enum DirectoryCommand {
    /// Make the directory equal to a file. Who is not in the file is removed.
    Apply(ApplyArguments),
    /// Show who there is.
    Show,
    /// Let an actor count for nothing, from the next decision on.
    Disable(SwitchArguments),
    /// Let an actor count again.
    Enable(SwitchArguments),
}

/// What `directory apply` takes.
#[derive(Debug, Args)]
pub struct ApplyArguments {
    /// The file; `-` reads standard input. An entry that does not say `enabled` is left as it is; a new one is enabled.
    file: PathBuf,
    /// Say what would change, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Who does it, for the record.
    #[arg(long = "as", value_name = "ACTOR", value_parser = actor)]
    by: Option<Actor>,
}

/// What `directory disable` and `directory enable` take.
#[derive(Debug, Args)]
pub struct SwitchArguments {
    /// Whom: user:ID or service:ID.
    #[arg(value_parser = actor)]
    actor: Actor,
    /// Who does it, for the record.
    #[arg(long = "as", value_name = "ACTOR", value_parser = actor)]
    by: Option<Actor>,
}

pub(super) async fn run(globals: &Globals, command: &DirectoryCommand) -> anyhow::Result<Exit> {
    match command {
        DirectoryCommand::Apply(arguments) => apply(globals, arguments).await,
        DirectoryCommand::Show => show(&Session::open(globals).await?).await,
        DirectoryCommand::Disable(arguments) => {
            switch(&Session::open(globals).await?, arguments, Switch::Off).await
        }
        DirectoryCommand::Enable(arguments) => {
            switch(&Session::open(globals).await?, arguments, Switch::On).await
        }
    }
}

async fn apply(globals: &Globals, arguments: &ApplyArguments) -> anyhow::Result<Exit> {
    let text = input::read(&arguments.file)?;
    let file = DirectoryFile::parse(&text).map_err(|problems| {
        let message = format!(
            "{} is no directory: {}",
            arguments.file.display(),
            count(problems.len(), "problem")
        );
        Fault::new(Exit::Failed, message)
            .details(&problems)
            .help("mend what is named above; nothing was changed")
    })?;
    let session = Session::open(globals).await?;
    let now = session.store.directory().await?;
    let wanted = written(file, &now);
    let changes = changes(&now, &wanted);
    let applied = !changes.is_empty() && !arguments.dry_run;
    if applied {
        let named = |sign: &str| {
            let of_sign = changes.iter().filter(|change| change.sign == sign);
            of_sign.map(|change| change.what.clone()).collect::<Vec<_>>()
        };
        let data = json!({
            "added": named(Change::ADDED), "changed": named(Change::CHANGED), "removed": named(Change::REMOVED),
        });
        let event = session.event(None, EventKind::DirectoryChanged, arguments.by.as_ref(), data);
        session.store.replace_directory(&wanted, &event).await?;
    }
    session.screen.answer(
        || json!({ "applied": applied, "changes": changes.iter().map(Change::form).collect::<Vec<Value>>() }),
        |paint| told(&changes, arguments.dry_run, paint),
    )?;
    Ok(Exit::Done)
}

fn told(changes: &[Change], dry_run: bool, paint: Paint) -> String {
    let mut text: String = changes
        .iter()
        .map(|change| format!("{}\n", change.line(paint)))
        .collect();
    text.push_str(&match (changes.len(), dry_run) {
        (0, _) => "The directory is as the file says; nothing to change.\n".to_owned(),
        (number, true) => format!("{} to make; nothing was changed.\n", count(number, "change")),
        (number, false) => {
            format!(
                "{} made. They hold from the next decision on.\n",
                count(number, "change")
            )
        }
    });
    text
}

/// Which way an actor is switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Switch {
    On,
    Off,
}

async fn switch(session: &Session, arguments: &SwitchArguments, switch: Switch) -> anyhow::Result<Exit> {
    let SwitchArguments { actor, by } = arguments;
    let enabled = switch == Switch::On;
    let data = json!({ "actor": actor, "enabled": enabled });
    let event = session.event(None, EventKind::DirectoryChanged, by.as_ref(), data);
    if session.store.set_enabled(actor, enabled, &event).await? == Guarded::Lost {
        return Err(
            Fault::new(Exit::NotFound, format!("the directory does not know {actor}"))
                .help("see who there is with `countersign directory show`")
                .into(),
        );
    }
    session.screen.answer(
        || json!({ "actor": actor, "enabled": enabled }),
        |_| match switch {
            Switch::On => format!("{actor} is enabled.\n"),
            Switch::Off => format!(
                "{actor} is disabled: whatever they decided and nobody has used yet will be refused.\n"
            ),
        },
    )?;
    Ok(Exit::Done)
}

async fn show(session: &Session) -> anyhow::Result<Exit> {
    let directory = session.store.directory().await?;
    session
        .screen
        .answer(|| form(&directory), |paint| text(&directory, paint))?;
    Ok(Exit::Done)
}

fn form(directory: &Directory) -> Value {
    let users = directory.people.iter().map(|person| {
        json!({
            "id": person.id, "name": person.name, "admin": person.admin, "enabled": person.enabled,
            "groups": person.groups,
        })
    });
    let groups = directory.groups.iter().map(|group| {
        json!({ "id": group.id, "grants": group.grants.iter().copied().map(UserGrant::as_str).collect::<Vec<_>>() })
    });
    let accounts = directory.accounts.iter().map(|account| {
        json!({
            "id": account.id, "name": account.name, "enabled": account.enabled,
            "scopes": account.scopes.iter().copied().map(Scope::as_str).collect::<Vec<_>>(),
        })
    });
    json!({
        "users": users.collect::<Vec<_>>(),
        "groups": groups.collect::<Vec<_>>(),
        "service_accounts": accounts.collect::<Vec<_>>(),
    })
}

fn text(directory: &Directory, paint: Paint) -> String {
    if *directory == Directory::default() {
        return "Nobody. Write a file and use `countersign directory apply FILE`.\n".to_owned();
    }
    let state = |enabled: bool| {
        if enabled {
            Cell::from("")
        } else {
            Cell::new(Style::Red, "disabled")
        }
    };
    let shown = |name: &str| Cell::from(visible(name).to_string());
    let mut actors = Table::with_headings(["ACTOR", "NAME", "STATE", "ADMIN", "GROUPS OR SCOPES"]);
    for person in &directory.people {
        let groups: Vec<String> = person
            .groups
            .iter()
            .map(|group| visible(group).to_string())
            .collect();
        let admin = if person.admin { "admin" } else { "" };
        let actor = Actor::User(person.id.clone()).to_string();
        actors.row([
            actor.into(),
            shown(&person.name),
            state(person.enabled),
            admin.into(),
            groups.join(", ").into(),
        ]);
    }
    for account in &directory.accounts {
        let scopes: Vec<&str> = account.scopes.iter().copied().map(Scope::as_str).collect();
        let actor = Actor::Service(account.id.clone()).to_string();
        actors.row([
            actor.into(),
            shown(&account.name),
            state(account.enabled),
            "".into(),
            scopes.join(", ").into(),
        ]);
    }
    let mut text = actors.render(paint);
    if !directory.groups.is_empty() {
        let mut groups = Table::with_headings(["GROUP", "GRANTS"]);
        for group in &directory.groups {
            let grants: Vec<&str> = group.grants.iter().copied().map(UserGrant::as_str).collect();
            groups.row([shown(&group.id), grants.join(", ").into()]);
        }
        text.push_str(&format!("\n{}", groups.render(paint)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Person;

    #[test]
    fn case_e6_a_display_name_is_shown_escaped() {
        let person = Person {
            id: "mal".to_owned(),
            name: "Ada\u{202e}\u{200b}".to_owned(),
            admin: false,
            enabled: false,
            groups: ["ops".to_owned()].into(),
        };
        let directory = Directory {
            people: vec![person],
            ..Directory::default()
        };
        let shown = text(&directory, Paint::PLAIN);
        assert!(
            shown.ends_with("user:mal  Ada\\u{202e}\\u{200b}  disabled         ops\n"),
            "{shown}"
        );
        assert_eq!(form(&directory)["users"][0]["name"], "Ada\u{202e}\u{200b}");
    }
}
