/// The extension `rl4sys_native._core`: decisions of policies in Python at the speed of C++.
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "act_path.hpp"

NB_MODULE(_core, module) {
    using namespace rl4sys::python;
    // An agent that is still open when the process ends is no mistake of the program.
    nb::set_leak_warnings(false);
    require_known_arrays();
    watch_forks();
    module.attr("version") = RL4SYS_VERSION;
    module.def("kernel_sets", &kernel_sets);
    module.def("known_ops", &rl4sys::known_ops);
    module.def("noise_rows", &noise_rows);
    nb::class_<RowPolicy>(module, "RowPolicy")
        .def(nb::init<nb::dict, const std::string&>())
        .def("load", &RowPolicy::load)
        .def("decide_rows", &RowPolicy::decide_rows, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(),
             nb::arg(), nb::arg().none(), nb::arg(), nb::arg());
    nb::class_<ActForm>(module, "ActForm")
        .def(nb::init<nb::list, nb::object, nb::object, const std::string&, std::int64_t, std::vector<float>,
                      std::vector<float>, nb::object>(),
             nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg());
    nb::class_<ActContext>(module, "ActContext")
        .def("__init__", [](ActContext* self, nb::object governor, nb::object add_time, std::int64_t sampled) {
            new (self) ActContext{std::move(governor), std::move(add_time), sampled, {}, {}, {}};
        });
    nb::class_<Columns>(module, "Columns")
        .def(nb::init<const ActForm&, nb::tuple, nb::object, nb::object, nb::object>(), nb::arg(), nb::arg(), nb::arg(),
             nb::arg(), nb::arg().none());
    nb::class_<ActPath>(module, "ActPath")
        .def(nb::init<std::shared_ptr<ActContext>, std::uint64_t>())
        .def("open",
             [](ActPath& path, std::shared_ptr<ActForm> form, std::shared_ptr<RowPolicy> policy,
                std::shared_ptr<Columns> columns, nb::tuple carry, nb::object plan, nb::object is_locked,
                std::size_t row, std::size_t room, std::int64_t first_decision, std::uint64_t step,
                std::int64_t takable) {
                 path.open(std::move(form), std::move(policy), std::move(columns), std::move(carry), std::move(plan),
                           std::move(is_locked), {row, room, first_decision, step, takable});
             })
        .def("close",
             [](ActPath& path) {
                 const Taken taken = path.close();
                 if (taken.decisions == 0 && taken.begin < 0) return nb::object(nb::none());
                 return nb::object(nb::make_tuple(taken.decisions, taken.begin));
             })
        .def_prop_ro("taken", &ActPath::taken)
        .def("act", &ActPath::act, nb::arg().none(), nb::arg().none(), nb::arg().none())
        .def("take_step", &ActPath::take_step)
        .def("reward", &ActPath::reward, nb::arg().none(), nb::arg().none());
}
