//! The core inside the host: both faces stepped by hand and driven by tokio,
//! and what happens when a guest does not behave.
//!
//! The component is the one built into the library (`cargo xtask test`), or the
//! file that `HERMITCRAB_COMPONENT` names.

mod driven;
mod limits;
mod pool;
mod programs;
mod saved;
mod stepped;

use std::time::Duration;

use hermitcrab_host::{Event, Host, HostBuilder, Session};

/// A builder of hosts that run the component.
fn component() -> HostBuilder {
    match std::env::var_os("HERMITCRAB_COMPONENT") {
        Some(path) => Host::builder().core(path),
        None => Host::builder(),
    }
}

/// The faces that must behave alike.
fn faces() -> [(&'static str, Host); 2] {
    [
        (
            "native",
            Host::builder().native_core().build().expect("native"),
        ),
        ("component", component().build().expect("a core")),
    ]
}

/// All events up to and with the first of `kind`, within a generous time.
async fn until(session: &mut Session, kind: &str) -> Vec<Event> {
    let mut events = Vec::new();
    let wait = async {
        while let Some(event) = session.next_event().await {
            let found = event.kind() == kind;
            events.push(event);
            if found {
                break;
            }
        }
    };
    let guard = Duration::from_secs(60);
    if tokio::time::timeout(guard, wait).await.is_err() {
        panic!("no {kind} after {:?}", kinds(&events));
    }
    events
}

fn kinds(events: &[Event]) -> Vec<&str> {
    events.iter().map(Event::kind).collect()
}
