//! A counter in the loops of a module, so that no builtin of the sandbox keeps
//! the core for ever: what is computed is counted where nothing reads the clock,
//! and looked at now and then (`src/memory/clock/ticks.rs`).
//!
//! A turn of a loop counts, and so does a call of a function that calls others. A loop
//! that is short and calls nothing goes over what is in memory: its turns are worth
//! less. Left uncounted, `jq` took a minute for what passed as a second, and counting
//! them takes no time that can be measured (`docs/notes/measurements.md`). Weights by
//! the number of operators were tried: large bodies are mostly other cases, so that an
//! interpreter's time passed four times as fast as that of a sort.

use std::convert::Infallible;

use anyhow::{Context, Result};
use wasm_encoder::reencode::{Error, Reencode};
use wasm_encoder::{
    BlockType, CodeSection, ConstExpr, ExportSection, Function, GlobalSection, GlobalType,
    Instruction, Module, ValType,
};
use wasmparser::{
    ExportSectionReader, ExternalKind, FunctionBody, GlobalSectionReader, Operator, Parser,
    Payload, TypeRef, Validator, WasmFeatures,
};

/// Called when the counter is used up; begins with filling it.
const TICK: &str = "hermitcrab_tick";
/// Fills the counter.
const REFILL: &str = "hermitcrab_refill";
/// Leaves little in the counter: the next tick comes soon.
const HURRY: &str = "hermitcrab_hurry";
/// Traps as nothing else does: it divides by zero.
const LEAVE: &str = "hermitcrab_leave";
/// What a call is worth, and a turn of a loop that calls.
const TURN: i32 = 3;
/// Operators by which a turn of a loop that calls nothing is worth one more than one, up
/// to [`TURN`].
const OPERATORS_PER_WORTH: u32 = 24;
/// What is counted between two ticks: about half a millisecond.
const TURNS: i32 = 62_500 * TURN;
/// The same after [`HURRY`].
const FEW_TURNS: i32 = 500 * TURN;

/// `module` with counting loops; unchanged if it has nothing to call.
pub(crate) fn in_loops(module: &[u8]) -> Result<Vec<u8>> {
    let mut functions = 0;
    let mut global = 0;
    let (mut tick, mut refill, mut hurry, mut leave) = (None, None, None, None);
    for payload in Parser::new(0).parse_all(module) {
        match payload? {
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    match import?.ty {
                        TypeRef::Func(_) => functions += 1,
                        TypeRef::Global(_) => global += 1,
                        _ => {}
                    }
                }
            }
            Payload::GlobalSection(globals) => global += globals.count(),
            Payload::ExportSection(exports) => {
                for export in exports {
                    let export = export?;
                    match (export.kind, export.name) {
                        (ExternalKind::Func, TICK) => tick = Some(export.index),
                        (ExternalKind::Func, REFILL) => refill = Some(export.index),
                        (ExternalKind::Func, HURRY) => hurry = Some(export.index),
                        (ExternalKind::Func, LEAVE) => leave = Some(export.index),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    let (Some(tick), Some(refill), Some(hurry), Some(leave)) = (tick, refill, hurry, leave) else {
        return Ok(module.to_vec());
    };
    let mut counting = Counting {
        next: functions,
        global,
        tick,
        refill,
        hurry,
        leave,
    };
    let mut counted = Module::new();
    counting
        .parse_core_module(&mut counted, Parser::new(0), module)
        .context("cannot put a counter into the loops of the core")?;
    let counted = counted.finish();
    Validator::new_with_features(WasmFeatures::all()).validate_all(&counted)?;
    Ok(counted)
}

struct Counting {
    /// The function whose body comes next.
    next: u32,
    /// The counter.
    global: u32,
    tick: u32,
    refill: u32,
    hurry: u32,
    leave: u32,
}

impl Counting {
    fn fill(&self, function: &mut Function, turns: i32) {
        function.instruction(&Instruction::I32Const(turns));
        function.instruction(&Instruction::GlobalSet(self.global));
    }

    fn count(&self, function: &mut Function, worth: i32) {
        for instruction in [
            Instruction::GlobalGet(self.global),
            Instruction::I32Const(worth),
            Instruction::I32Sub,
            Instruction::GlobalSet(self.global),
            Instruction::GlobalGet(self.global),
            Instruction::I32Const(0),
            Instruction::I32LtS,
            Instruction::If(BlockType::Empty),
            Instruction::Call(self.tick),
            Instruction::End,
        ] {
            function.instruction(&instruction);
        }
    }
}

impl Reencode for Counting {
    type Error = Infallible;

    fn parse_global_section(
        &mut self,
        globals: &mut GlobalSection,
        section: GlobalSectionReader<'_>,
    ) -> Result<(), Error> {
        wasm_encoder::reencode::utils::parse_global_section(self, globals, section)?;
        let counter = GlobalType {
            val_type: ValType::I32,
            mutable: true,
            shared: false,
        };
        globals.global(counter, &ConstExpr::i32_const(TURNS));
        Ok(())
    }

    fn parse_export_section(
        &mut self,
        exports: &mut ExportSection,
        section: ExportSectionReader<'_>,
    ) -> Result<(), Error> {
        for export in section {
            let export = export?;
            if ![TICK, REFILL, HURRY, LEAVE].contains(&export.name) {
                self.parse_export(exports, export)?;
            }
        }
        Ok(())
    }

    fn parse_function_body(
        &mut self,
        code: &mut CodeSection,
        body: FunctionBody<'_>,
    ) -> Result<(), Error> {
        let Counted { calls, loops } = counted(&body)?;
        let mut loops = loops.into_iter();
        let mut function = self.new_function_with_parsed_locals(&body)?;
        if [self.tick, self.refill].contains(&self.next) {
            self.fill(&mut function, TURNS);
        }
        if self.next == self.hurry {
            self.fill(&mut function, FEW_TURNS);
        }
        if self.next == self.leave {
            for instruction in [
                Instruction::I32Const(0),
                Instruction::I32Const(0),
                Instruction::I32DivS,
                Instruction::Drop,
            ] {
                function.instruction(&instruction);
            }
        }
        if calls {
            self.count(&mut function, TURN);
        }
        let mut reader = body.get_operators_reader()?;
        while !reader.eof() {
            let instruction = self.parse_instruction(&mut reader)?;
            let is_loop = matches!(instruction, Instruction::Loop(_));
            function.instruction(&instruction);
            if is_loop && let Some(worth) = loops.next() {
                self.count(&mut function, worth);
            }
        }
        code.function(&function);
        self.next += 1;
        Ok(())
    }
}

/// What counts in a function.
#[derive(Default)]
struct Counted {
    /// Whether it calls others, so that its calls count.
    calls: bool,
    /// What a turn of each loop is worth, in the order of their heads.
    loops: Vec<i32>,
}

fn counted(body: &FunctionBody<'_>) -> Result<Counted, Error> {
    #[derive(Default)]
    struct Open {
        /// Which loop it is, if it is one.
        index: Option<usize>,
        operators: u32,
        calls: bool,
    }
    impl Open {
        /// What a turn of it is worth.
        fn worth(&self) -> i32 {
            match self.calls {
                true => TURN,
                false => TURN.min(1 + (self.operators / OPERATORS_PER_WORTH) as i32),
            }
        }
    }
    let mut counted = Counted::default();
    let mut open = vec![Open::default()];
    let mut reader = body.get_operators_reader()?;
    while !reader.eof() {
        let operator = reader.read()?;
        let Some(inner) = open.last_mut() else { break };
        inner.operators += 1;
        match operator {
            Operator::Loop { .. } => {
                open.push(Open {
                    index: Some(counted.loops.len()),
                    ..Open::default()
                });
                counted.loops.push(TURN);
            }
            Operator::Block { .. } | Operator::If { .. } => open.push(Open::default()),
            Operator::Call { .. } | Operator::CallIndirect { .. } => inner.calls = true,
            Operator::End => {
                let Some(ended) = open.pop() else { break };
                match (ended.index, open.last_mut()) {
                    (Some(index), _) => counted.loops[index] = ended.worth(),
                    (None, Some(outer)) => {
                        outer.operators += ended.operators;
                        outer.calls |= ended.calls;
                    }
                    (None, None) => counted.calls = ended.calls,
                }
            }
            _ => {}
        }
    }
    Ok(counted)
}

#[cfg(test)]
mod tests {
    use wasm_encoder::{
        BlockType, CodeSection, ConstExpr, ExportKind, ExportSection, Function, FunctionSection,
        GlobalSection, GlobalType, Instruction, Module, TypeSection, ValType,
    };
    use wasmparser::{Operator, Parser, Payload};

    use super::{FEW_TURNS, HURRY, LEAVE, REFILL, TICK, TURN, TURNS, in_loops};

    /// The functions that are called by name, and one with `body`.
    fn module(body: &[Instruction<'_>]) -> Vec<u8> {
        let mut types = TypeSection::new();
        types.ty().function([], []);
        let mut functions = FunctionSection::new();
        let mut globals = GlobalSection::new();
        let stack = GlobalType {
            val_type: ValType::I32,
            mutable: true,
            shared: false,
        };
        globals.global(stack, &ConstExpr::i32_const(1));
        let mut exports = ExportSection::new();
        let mut code = CodeSection::new();
        let named = [TICK, REFILL, HURRY, LEAVE].map(|name| (name, &[][..]));
        for (index, (name, body)) in (0..).zip(named.into_iter().chain([("body", body)])) {
            functions.function(0);
            exports.export(name, ExportKind::Func, index);
            let mut function = Function::new([]);
            for instruction in body {
                function.instruction(instruction);
            }
            function.instruction(&Instruction::End);
            code.function(&function);
        }
        let mut module = Module::new();
        module.section(&types).section(&functions).section(&globals);
        module.section(&exports).section(&code);
        module.finish()
    }

    /// The operators of each function, and the names of the exports.
    fn read(module: &[u8]) -> (Vec<Vec<Operator<'_>>>, Vec<&str>) {
        let (mut bodies, mut names) = (Vec::new(), Vec::new());
        for payload in Parser::new(0).parse_all(module) {
            match payload.expect("a section") {
                Payload::ExportSection(exports) => {
                    names.extend(exports.into_iter().map(|it| it.expect("an export").name));
                }
                Payload::CodeSectionEntry(body) => {
                    let operators = body.get_operators_reader().expect("operators");
                    let operators = operators.into_iter().collect::<Result<_, _>>();
                    bodies.push(operators.expect("operators"));
                }
                _ => {}
            }
        }
        (bodies, names)
    }

    /// What each of the places is worth at which `body` counts.
    fn check(body: &[Instruction<'_>], expected: &[i32]) {
        let counted = in_loops(&module(body)).expect("a module");
        let (bodies, names) = read(&counted);
        assert_eq!(names, ["body"]);
        for (body, value) in [(0, TURNS), (1, TURNS), (2, FEW_TURNS)] {
            let fills = [
                Operator::I32Const { value },
                Operator::GlobalSet { global_index: 1 },
                Operator::End,
            ];
            assert_eq!(bodies[body], fills);
        }
        assert!(bodies[3].contains(&Operator::I32DivS));
        let counts = bodies[4].windows(2).filter_map(|pair| match pair {
            [Operator::I32Const { value }, Operator::I32Sub] => Some(*value),
            _ => None,
        });
        assert_eq!(counts.collect::<Vec<_>>(), expected);
    }

    const LOOP: Instruction<'_> = Instruction::Loop(BlockType::Empty);

    #[test]
    fn a_loop_that_calls_counts() {
        check(
            &[
                LOOP,
                Instruction::Call(0),
                Instruction::Br(0),
                Instruction::End,
            ],
            &[TURN],
        );
    }

    #[test]
    fn a_loop_that_calls_nothing_counts_by_its_length() {
        for (operators, worth) in [(1, 1), (30, 2), (60, TURN), (600, TURN)] {
            let mut body = vec![LOOP];
            body.extend(vec![Instruction::Nop; operators]);
            body.push(Instruction::End);
            check(&body, &[worth]);
        }
    }

    #[test]
    fn what_an_inner_loop_counts_an_outer_one_does_not() {
        let body = [
            LOOP,
            LOOP,
            Instruction::Call(0),
            Instruction::End,
            Instruction::Block(BlockType::Empty),
            Instruction::Call(0),
            Instruction::Br(1),
            Instruction::End,
            Instruction::End,
        ];
        check(&body, &[TURN, TURN]);
    }

    #[test]
    fn a_function_that_calls_counts() {
        check(&[Instruction::Call(0), Instruction::Call(1)], &[TURN]);
        check(&[Instruction::Nop], &[]);
    }

    #[test]
    fn a_module_without_those_functions_stays_as_it_is() {
        let bare = Module::new().finish();
        assert_eq!(in_loops(&bare).expect("a module"), bare);
    }
}
