//! Who and what there is: the people and the catalogue of the tests.

use super::*;

impl System {
    /// The catalogue of the tests, with the addresses of this test's servers.
    pub fn catalogue(&self) -> String {
        let tool = |name: &str, effect: &str, more: &str| {
            let url = self.tools.url("/effect");
            format!(
                "[tools.{name}]\nkind = \"http\"\nurl = \"{url}\"\ndescription = \"x\"\neffect = \"{effect}\"\n\
                 data_class = \"internal\"\ntimeout = \"20s\"\n{more}\n"
            )
        };
        let configuration = |name: &str, more: &str| {
            format!(
                "[configurations.{name}]\nmodel = \"m\"\ninstructions = \"help\"\ntoolsets = [\"all\"]\n{more}\n"
            )
        };
        [
            format!(
                "[providers.p]\nkind = \"openai\"\nbase_url = \"{}\"\nmax_retries = 1\n",
                self.chat.url()
            ),
            "[models.m]\nprovider = \"p\"\nzone = \"local\"\n".to_owned(),
            configuration("support", ""),
            configuration("two-eyes", "require_second_approver = true"),
            configuration("brief", "max_iterations = 2"),
            "[toolsets.all]\ntools = [\"look\", \"guarded_look\", \"refund\", \"tag\", \"purge\"]\n"
                .to_owned(),
            tool("look", "read_only", ""),
            tool("guarded_look", "read_only", "requires_approval = true"),
            tool("refund", "non_idempotent_write", "groups = [\"finance\"]"),
            tool("tag", "idempotent_write", ""),
            tool("purge", "non_idempotent_write", "requires_admin = true"),
        ]
        .join("\n")
    }

    /// Applies a catalogue as the next version.
    pub async fn apply_catalogue(&self, source: &str) -> i64 {
        countersign::catalogue::Catalogue::parse(source).unwrap_or_else(|problems| panic!("{problems}"));
        self.store
            .apply_catalogue(source, None, &self.event(None, EventKind::CatalogueApplied))
            .await
            .unwrap()
    }

    /// The directory is this one.
    pub async fn apply_directory(&self, directory: &Directory) {
        let event = self.event(None, EventKind::DirectoryChanged);
        self.store.replace_directory(directory, &event).await.unwrap();
    }

    /// An actor is enabled or disabled.
    pub async fn set_enabled(&self, actor: &str, enabled: bool) {
        let event = self.event(None, EventKind::DirectoryChanged);
        let _ = self
            .store
            .set_enabled(&actor.parse().unwrap(), enabled, &event)
            .await
            .unwrap();
    }

    pub(super) fn event(&self, run: Option<RunId>, kind: EventKind) -> NewEvent {
        NewEvent {
            id: self.clock.new_id().into(),
            run,
            kind,
            actor: None,
            at: self.clock.now(),
            data: json!({}),
        }
    }
}

fn person(id: &str, admin: bool, groups: &[&str]) -> Person {
    let groups = groups.iter().map(|group| (*group).to_owned()).collect();
    Person {
        id: id.to_owned(),
        name: id.to_owned(),
        admin,
        enabled: true,
        groups,
    }
}

fn account(id: &str, scopes: &[Scope]) -> Account {
    let scopes = scopes.iter().copied().collect();
    Account {
        id: id.to_owned(),
        name: id.to_owned(),
        enabled: true,
        scopes,
    }
}

/// ada is an admin, gina may decide for others, olga owns the runs, paul may nothing; ada and olga are in finance.
pub fn people() -> Directory {
    Directory {
        people: vec![
            person("ada", true, &["finance"]),
            person("gina", false, &["approvers"]),
            person("olga", false, &["finance"]),
            person("paul", false, &[]),
        ],
        groups: vec![
            Group {
                id: "approvers".to_owned(),
                grants: BTreeSet::from([UserGrant::AgentApprove]),
            },
            Group {
                id: "finance".to_owned(),
                grants: BTreeSet::new(),
            },
        ],
        accounts: vec![
            account("sweeper", &[Scope::AgentApprove]),
            account("reader", &[Scope::ConfigurationUse]),
        ],
    }
}
