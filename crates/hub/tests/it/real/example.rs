//! The example of the library, as its reader would run it.

use std::os::unix::fs::symlink;

use tieline_testkit::model::ModelServer;
use tieline_testkit::real::{self, AgentEnv, CodexConfig};
use tieline_testkit::{agents, probe};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_calls_with_two_agents() {
    assert!(real::loopback_only(), "run this suite with `cargo xtask test`");
    tieline_proc::set_host_program(real::fake_agent_program());
    let model = ModelServer::start().await;
    let claude = AgentEnv::claude(&model.url());
    let config = CodexConfig { model: "gpt-5.5", ..CodexConfig::default() };
    let codex = AgentEnv::codex(&model.url(), config);
    let bin = codex.root().join("bin");
    std::fs::create_dir(&bin).unwrap();
    for agent in ["claude", "codex"] {
        symlink(agents::program(agent).unwrap(), bin.join(agent)).unwrap();
    }
    let example = real::fake_agent_program().with_file_name("examples").join("three_calls");
    assert!(example.is_file(), "build it with `cargo build --workspace --examples`");
    let mut spec = tieline_proc::Spec::new(example, codex.workspace());
    for (name, value) in claude.vars().into_iter().chain(codex.vars()) {
        spec.env.set(name, value);
    }
    spec.env.set("PATH", format!("{}:/usr/bin:/bin", bin.display()));
    let output = tieline_proc::run(spec, b"", tieline_proc::RunLimits::default()).await.unwrap();
    // What the scripted model says to whom names no scenario.
    assert_eq!(output.stdout.to_text(), "claude: OK.\ncodex: OK.\n", "{output:?}");
    let marker = format!("HOME={}", codex.home().display());
    assert_eq!(probe::alive_with(&marker), Vec::<u32>::new(), "no process remains");
}
