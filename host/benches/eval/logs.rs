//! Logs: replaying them, and sessions that fork, by repeating a log and by copying.

use std::path::Path;
use std::time::Instant;

use hermitcrab_host::{
    EnvironmentChoice, ForkOptions, Host, InstanceOptions, MemoryOptions, Session, SessionConfig,
    SessionOptions, TakeoverOptions,
};

use crate::model::Model;
use crate::{Failure, cpu, runtime};

const FORKS: usize = 1_000;
const FILES: usize = 1_000;
const LOGS: usize = 200;

/// Runs `input` to its end.
async fn finish(session: &mut Session) -> Result<(), Failure> {
    while let Some(event) = session.next_event().await {
        match event.kind() {
            "PROCESSING_END" if event.data()["reason"] == "completed" => return Ok(()),
            "PROCESSING_END" => return Err(format!("{:?}", event.data()).into()),
            _ => {}
        }
    }
    Err("the session ended".into())
}

/// A session that has done so many rounds, recorded to `log`.
async fn session(
    host: &Host,
    model: &Model,
    files: usize,
    log: &Path,
) -> Result<(Session, hermitcrab_host::Instance), Failure> {
    let options = InstanceOptions {
        record: Some(log.to_owned()),
        ..InstanceOptions::default()
    };
    let instance = host.start_instance(options).await?;
    let file = |number: usize| {
        (
            format!("d{}/f{number}.txt", number % 30),
            "a line of text\n".repeat(40).into(),
        )
    };
    let memory = MemoryOptions {
        files: (0..files).map(file).collect(),
        ..MemoryOptions::default()
    };
    let config = SessionConfig {
        base_url: Some(model.url.clone()),
        max_tool_rounds_per_input: 10_000,
        ..SessionConfig::default()
    };
    let options = SessionOptions::new(config, EnvironmentChoice::Memory(memory));
    let mut session = instance.open_session(options).await?;
    session.submit("work").await?;
    finish(&mut session).await?;
    Ok((session, instance))
}

fn host(model: &Model) -> Result<Host, Failure> {
    let host = Host::builder().credential("anthropic", "bench", &model.url);
    Ok(host.build()?)
}

/// Forks of one session of 50 rounds with a tree of 1,000 files, ready to go on.
pub(crate) fn forks(place: &Path) -> Result<(), Failure> {
    const ROUNDS: usize = 50;
    let model = Model::start(ROUNDS)?;
    let host = host(&model)?;
    let log = place.join("forks.log.gz");
    println!("\nforks of a session of {ROUNDS} rounds with {FILES} files, ready to go on\n");
    println!("| way | forks | wall time together, s | CPU of a fork, ms |\n|---|---|---|---|");
    let runtime = runtime()?;
    let row = |way: &str, count: usize, began: Instant, before: std::time::Duration| {
        println!(
            "| {way} | {count} | {:.2} | {:.3} |",
            began.elapsed().as_secs_f64(),
            (cpu() - before).as_secs_f64() * 1_000.0 / count as f64
        );
    };
    runtime.block_on(async {
        let (original, instance) = session(&host, &model, FILES, &log).await?;
        let (began, before) = (Instant::now(), cpu());
        let mut forks = Vec::with_capacity(FORKS);
        for _ in 0..FORKS {
            forks.push(original.fork(TakeoverOptions::default()).await?);
        }
        row("copying, in one instance", FORKS, began, before);
        let last = forks.pop().ok_or("no fork")?;
        if last.history().await?.len() != original.history().await?.len() {
            return Err("a fork without its history".into());
        }
        drop(forks);
        let saved = original.save().await?;
        instance.end_record().await?;
        let (count, began, before) = (50, Instant::now(), cpu());
        for _ in 0..count {
            let other = host.start_instance(InstanceOptions::default()).await?;
            other
                .restore(saved.clone(), TakeoverOptions::default())
                .await?;
        }
        row("a saved session, an instance each", count, began, before);
        let (count, began, before) = (10, Instant::now(), cpu());
        for _ in 0..count {
            host.fork(&log, 51, ForkOptions::default())?;
        }
        row("repeating the log, an instance each", count, began, before);
        Ok::<_, Failure>(())
    })?;
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    Ok(())
}

/// Replays of logs, and CPU of late rounds in a long session.
pub(crate) fn replays(place: &Path) -> Result<(), Failure> {
    println!("\n| measure | value |\n|---|---|");
    let model = Model::start(20)?;
    let host = host(&model)?;
    let log = place.join("twenty.log.gz");
    let runtime = runtime()?;
    let recorded = runtime.block_on(session(&host, &model, 0, &log))?;
    runtime.block_on(recorded.1.end_record())?;
    drop(recorded);
    let (began, before) = (Instant::now(), cpu());
    for _ in 0..LOGS {
        host.replay(&log)?.run(|_| {})?;
    }
    let cpu_ms = (cpu() - before).as_secs_f64() * 1_000.0 / LOGS as f64;
    println!(
        "| replay of a log of 20 rounds, ms of CPU a round, the start of a core included | {:.3} |",
        cpu_ms / 21.0
    );
    println!(
        "| 1,000 such logs, s, one after the other | {:.1} |",
        began.elapsed().as_secs_f64() * 1_000.0 / LOGS as f64
    );
    let log = place.join("long.log.gz");
    let model = Model::start(2_000)?;
    let recorded = runtime.block_on(session(&self::host(&model)?, &model, 0, &log))?;
    runtime.block_on(recorded.1.end_record())?;
    drop(recorded);
    // Nothing but the core runs in a replay: its time is that of the rounds.
    let mut times = Vec::new();
    let before = cpu();
    let mut seen = 0;
    host.replay(&log)?.run(|event| {
        if event.json.windows(7).any(|at| at == b"\"USAGE\"") {
            seen += 1;
            times.push(cpu());
        }
    })?;
    let between = |from: usize, to: usize| {
        (times[to] - times[from]).as_secs_f64() * 1_000.0 / (to - from) as f64
    };
    println!(
        "| a session of 2,000 rounds replayed, ms of CPU | {:.0} |",
        (times[seen - 1] - before).as_secs_f64() * 1_000.0
    );
    println!(
        "| its rounds 10 to 110, ms of CPU a round | {:.3} |",
        between(10, 110)
    );
    println!(
        "| its rounds 1,900 to 2,000, ms of CPU a round | {:.3} |",
        between(1_900, 2_000)
    );
    Ok(())
}
