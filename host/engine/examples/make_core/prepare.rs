//! Preparing a core: it starts from an image of an instance that has already
//! read its tables.
//!
//! An instance of the core is run up to `prepare`, and its memory becomes the
//! initial memory of the component. Instances then share the pages of the image
//! until they write to them, so that opening a session does not read catalogue
//! and declarations again.

use std::future::{Future, ready};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use wasmtime::component::{
    Component, ComponentExportIndex, Func, Instance, Lift, Linker, WasmList,
};
use wasmtime::{Engine, Error, Result, Store, bail, format_err};
use wasmtime_wizer::{ComponentInstanceState, Wizer};

/// The interface of `wit/hermitcrab.wit` and the function in it.
const INTERFACE: &str = "hermitcrab:core/instance";
const PREPARE: &str = "prepare";

/// `wasm`, prepared.
pub(crate) fn prepare(engine: &Engine, wasm: &[u8]) -> Result<Vec<u8>> {
    let wizer = Wizer::new();
    let (context, instrumented) = wizer.instrument_component(wasm)?;
    let component = Component::new(engine, instrumented)?;
    let prepare = component
        .get_export_index(None, INTERFACE)
        .and_then(|interface| component.get_export_index(Some(&interface), PREPARE));
    let prepare = prepare.ok_or_else(|| format_err!("it has no function {INTERFACE}#{PREPARE}"))?;
    let mut store = Store::new(engine, ());
    store.set_epoch_deadline(u64::MAX / 2);
    let instance = Linker::new(engine).instantiate(&mut store, &component)?;
    let function = function(&mut store, &instance, &prepare)?;
    function.typed::<(), ()>(&store)?.call(&mut store, ())?;
    let mut state = State {
        store,
        instance,
        failed: None,
    };
    let prepared = now(wizer.snapshot_component(&context, &mut state));
    match state.failed {
        Some(error) => Err(error),
        None => prepared?,
    }
}

/// The result of a future in which nothing waits.
fn now<T>(future: impl Future<Output = T>) -> Result<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => Ok(result),
        Poll::Pending => bail!("the snapshot waits for something"),
    }
}

fn function(
    store: &mut Store<()>,
    instance: &Instance,
    index: &ComponentExportIndex,
) -> Result<Func> {
    let function = instance.get_func(store, index);
    function.ok_or_else(|| format_err!("an export is not a function"))
}

/// The instance whose memory and globals are read.
struct State {
    store: Store<()>,
    instance: Instance,
    /// The first value that could not be had.
    failed: Option<Error>,
}

impl State {
    /// What the function `name` of `interface` returns, as `read` sees it; a
    /// failure is kept and stands for a default.
    fn call<R: Lift + 'static, T: Default>(
        &mut self,
        interface: &str,
        name: &str,
        read: impl FnOnce(&Store<()>, R) -> T,
    ) -> T {
        let (instance, store) = (&self.instance, &mut self.store);
        let result = instance
            .get_export_index(&mut *store, None, interface)
            .and_then(|interface| instance.get_export_index(&mut *store, Some(&interface), name))
            .ok_or_else(|| format_err!("{interface} has no {name}"))
            .and_then(|index| function(store, instance, &index))
            .and_then(|function| function.typed::<(), (R,)>(&*store))
            .and_then(|function| function.call(&mut *store, ()));
        match result {
            Ok((value,)) => read(store, value),
            Err(error) => {
                self.failed.get_or_insert(error);
                T::default()
            }
        }
    }
}

impl ComponentInstanceState for State {
    fn call_func_ret_list_u8(
        &mut self,
        instance: &str,
        func: &str,
        contents: impl FnOnce(&[u8]) + Send,
    ) -> impl Future<Output = ()> + Send {
        let read = |store: &Store<()>, list: WasmList<u8>| contents(list.as_le_slice(store));
        self.call(instance, func, read);
        ready(())
    }

    fn call_func_ret_s32(
        &mut self,
        instance: &str,
        func: &str,
    ) -> impl Future<Output = i32> + Send {
        ready(self.call(instance, func, |_, value| value))
    }

    fn call_func_ret_s64(
        &mut self,
        instance: &str,
        func: &str,
    ) -> impl Future<Output = i64> + Send {
        ready(self.call(instance, func, |_, value| value))
    }

    fn call_func_ret_f32(
        &mut self,
        instance: &str,
        func: &str,
    ) -> impl Future<Output = u32> + Send {
        ready(self.call(instance, func, |_, value: f32| value.to_bits()))
    }

    fn call_func_ret_f64(
        &mut self,
        instance: &str,
        func: &str,
    ) -> impl Future<Output = u64> + Send {
        ready(self.call(instance, func, |_, value: f64| value.to_bits()))
    }
}
