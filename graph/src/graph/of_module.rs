use super::checked::Graph;
use crate::{FusionProgram, GraphError, HloModule, NodeDescription, Scope, Task, pace};

impl HloModule<'_> {
    /// Returns the graph of this module. `configurable` lists the configurable nodes in slot order; those of a program
    /// before fusion are its slots.
    pub fn into_graph(mut self, task: Task, configurable: Vec<u32>) -> Result<Graph, GraphError> {
        self.take_graph(task, configurable)
    }

    /// Returns the graph of this module, as [`Self::into_graph`] does, and the descriptions of its configurable nodes.
    pub fn into_described_graph(
        mut self,
        task: Task,
        configurable: Vec<u32>,
    ) -> Result<(Graph, Vec<NodeDescription>), GraphError> {
        let graph = self.take_graph(task, configurable)?;
        let configurable = pace::in_steps(16, graph.configurable());
        let nodes = configurable
            .filter_map(|&node| self.describe(node))
            .collect();
        Ok((graph, nodes))
    }

    fn take_graph(&mut self, task: Task, configurable: Vec<u32>) -> Result<Graph, GraphError> {
        // The program reads the instructions of the module, so it comes before the arrays are
        // taken.
        let program = match task.kind().scope {
            Scope::Program => Some(FusionProgram::new(self)?),
            Scope::Kernel | Scope::Nodes | Scope::EveryNode => None,
        };
        let arrays = std::mem::take(&mut self.arrays);
        match program {
            Some(program) => Graph::of_program(arrays, program),
            None => Graph::new(task, arrays, configurable),
        }
    }
}
