"""The search for fusions of a program on XLA:CPU.

* ``problem`` prepares a program, and converts candidates for the model and for the machine
* ``space`` draws candidates and their neighbours, within the limits of kernels
* ``annealing`` is the search strategy
* ``explain`` asks the model where the time goes
* ``compiler`` compiles candidates in the measuring process
"""
